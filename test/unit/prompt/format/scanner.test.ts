import assert from 'node:assert/strict';
import fc from 'fast-check';
import { readExpression } from '../../../../src/prompt/expression';
import { scan, type TemplateLanguage } from '../../../../src/prompt/format/scanner';
import { alignValue, decodeString, Located } from '../../../../src/prompt/located';
import { formatClass, snake } from '../../../../src/prompt/vocabulary';

const languages: readonly TemplateLanguage[] = ['jinja', 'nunjucks', 'liquid', 'handlebars', 'mustache', 'semantic-kernel', 'double-brace'];
const shape = (text: string, language: TemplateLanguage): string[] => scan(text, language).map((t) => `${t.type}:${text.slice(t.start, t.end)}`);

describe('prompt/format/scanner', () => {
  it('covers the text without gap or overlap, whatever it is', () => {
    const bits = fc.array(fc.oneof(fc.constantFrom('{{', '}}', '{%', '%}', '{#', '#}', '{{{', '}}}', '{{{{raw}}}}', '{{{{/raw}}}}', '{{!--', '--}}', '"', "'", '\\', '{% raw %}', '{% endraw %}', '\n\n', '{{=<% %>=}}', '<%', '%>'), fc.string({ maxLength: 5 }))).map((a) => a.join(''));
    fc.assert(fc.property(fc.constantFrom(...languages), bits, (language, text) => {
      let at = 0;
      for (const token of scan(text, language)) {
        assert.equal(token.start, at);
        assert.ok(token.start <= token.inner.start && token.inner.start <= token.inner.end && token.inner.end <= token.end);
        at = token.end;
      }
      assert.equal(at, text.length);
    }), { numRuns: 2000, seed: 3 });
  });

  it('knows strings, brackets, raw regions, escapes and a brace too many', () => {
    assert.deepEqual(shape('{{ "}}" }}x', 'jinja'), ['output:{{ "}}" }}', 'text:x']);
    assert.deepEqual(shape('{{ {"a": {"b": 1}} }}', 'jinja'), ['output:{{ {"a": {"b": 1}} }}']);
    assert.deepEqual(shape('{{answer}}}', 'jinja'), ['output:{{answer}}', 'text:}']);
    assert.deepEqual(shape("{% raw %}{{ x }}{% endraw %}{# it's #}", 'jinja'), ['raw:{% raw %}{{ x }}{% endraw %}', "comment:{# it's #}"]);
    assert.deepEqual(shape('\\{{x}} {{{{r}}}}{{y}}{{{{/r}}}}', 'handlebars'), ['raw:\\{{x}}', 'text: ', 'raw:{{{{r}}}}{{y}}{{{{/r}}}}']);
    assert.deepEqual(shape("it's {{x}} don't", 'handlebars'), ["text:it's ", 'output:{{x}}', "text: don't"]);
    assert.deepEqual(shape('{{ open {{ x }}', 'jinja'), ['raw:{{', 'text: open ', 'output:{{ x }}']);
  });

  it('trims where the tags ask for it only', () => {
    const [, text] = scan('{{- a -}} b {{+ c +}}', 'jinja');
    assert.equal(text?.type, 'text');
    assert.deepEqual(scan('{{- a -}} b {{+ c +}}', 'jinja').filter((t) => t.type === 'output').map((t) => [t.trimLeft, t.trimRight]), [[true, true], [false, false]]);
  });
});

describe('prompt/expression', () => {
  it('finds what a value depends on', () => {
    const paths = (source: string, condition = false): string[] => readExpression(source, condition).references.map((r) => `${r.path}${r.call ? '()' : ''}${r.tested === undefined ? '' : `?${r.tested}`}`);
    assert.deepEqual(paths("message['content'] | trim"), ['message.content']);
    assert.deepEqual(paths('a.b(c, d=e).f'), ['a.b().f()', 'c', 'e']);
    assert.deepEqual(paths('x is defined and y', true), ['x?defined', 'y?truth']);
    assert.deepEqual(paths('x == "a"', true), ['x']);
    assert.deepEqual(paths("'a' if x else 'b'"), ['x?truth']);
    assert.deepEqual(paths('"literal" ~ 3'), []);
    assert.equal(readExpression('"a" + "b"').constant, 'ab');
    assert.equal(readExpression('"a" | upper').constant, null);
    assert.deepEqual(readExpression('new Date().toISOString().slice(0, 10)').references[0]?.strings, ['%Y-%m-%d']);
  });
});

describe('prompt/located', () => {
  it('keeps the offset of every character through escapes and folding', () => {
    const source = '{"a": "x\\n\\u00e9\\"y"}';
    const located = decodeString(source, 7, source.length - 2, 'json');
    assert.equal(located.text, 'x\né"y');
    assert.deepEqual([0, 1, 2, 3, 4].map((i) => source.slice(located.at(i), located.endAt(i + 1))), ['x', '\\n', '\\u00e9', '\\"', 'y']);
    const yaml = 'k: >\n  one\n  two {{x}}\n';
    const folded = alignValue('one two {{x}}\n', yaml, 5, yaml.length);
    assert.equal(yaml.slice(folded.at(8), folded.endAt(13)), '{{x}}');
    assert.equal(Located.slice('abcdef', 1, 5).part(1, 3).at(1), 3);
  });
});

describe('prompt/vocabulary', () => {
  it('compares names as words', () => {
    assert.deepEqual(['currentDate', 'CURRENT_DATE', 'current-date', 'Current Date', 'HTTPRequestID'].map(snake), ['current_date', 'current_date', 'current_date', 'current_date', 'http_request_id']);
  });

  it('tells date formats from formats with a time', () => {
    for (const f of ['%Y-%m-%d', '%d %b %Y', '%A', 'YYYY-MM-DD', 'dd.MM.yyyy', 'EEEE, d MMMM yyyy', 'Y-m-d', 'F j, Y']) assert.equal(formatClass(f), 'day', f);
    for (const f of ['%H:%M', '%Y-%m-%d %I %p', '%X', '%s', 'HH:mm', 'YYYY-MM-DDTHH:mm:ss', 'H:i', 'hh:mm a']) assert.equal(formatClass(f), 'minute', f);
    for (const f of ['utf-8', 'name', ', ', 'T', 'user']) assert.equal(formatClass(f), null, f);
  });
});
