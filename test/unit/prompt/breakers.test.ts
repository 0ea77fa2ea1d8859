import assert from 'node:assert/strict';
import { lintFile, type LintResult } from '../../../src/prompt/lint';
import { useCodeReader } from '../../../src/prompt/parse';
import { parseCode } from '../../../src/prompt/format/code';
import type { Volatility } from '../../../src/prompt/prompt';

const rules = Array.from({ length: 40 }, (_, i) => `Rule ${String(i + 1)}: keep the answer to the point and name the source of each figure.\n`).join('');
const lint = (text: string, path: string, everyone = false): LintResult => lintFile(text, path, { scope: everyone ? 'everyone' : 'user' });
const warnings = (r: LintResult): string[] => r.findings.filter((f) => f.severity === 'warning').map((f) => f.text);

/** Every kind of breaker: what is written, in which file, and the class it must get. */
const rows: Readonly<Record<string, readonly (readonly [file: string, source: string, volatility: Volatility])[]>> = {
  'clock call in a template': [
    ['a.j2', '{{ now() }}', 'minute'],
    ['a.j2', '{{ now().strftime("%Y-%m-%d") }}', 'day'],
    ['a.j2', '{{ now().strftime("%Y-%m-%d %H:%M") }}', 'minute'],
    ['a.j2', "{% now 'utc', '%d %B %Y' %}", 'day'],
    ['a.j2', "{{ strftime_now('%d %b %Y') }}", 'day'],
    ['a.j2', "{{ datetime.now().strftime('%S') }}", 'minute'],
    ['a.liquid', "{{ 'now' | date: '%Y' }}", 'day'],
    ['a.liquid', "{{ 'now' | date: '%s' }}", 'minute'],
    ['skprompt.txt', '{{time.Date}}', 'day'],
    ['skprompt.txt', '{{time.now}}', 'minute'],
    ['skprompt.txt', '{{TimePlugin.DayOfWeek}}', 'day'],
    ['a.hbs', '{{now}}', 'minute'],
    ['a.hbs', '{{date}}', 'day'],
    ['a.hbs', '{{moment now format="YYYY-MM-DD HH:mm"}}', 'minute'],
  ],
  'clock call in code': [
    ['a.ts', '${new Date()}', 'minute'],
    ['a.ts', '${Date.now()}', 'minute'],
    ['a.ts', '${new Date().toISOString()}', 'minute'],
    ['a.ts', "${new Date().toISOString().split('T')[0]}", 'day'],
    ['a.ts', '${new Date().toLocaleDateString()}', 'day'],
    ['a.ts', '${dayjs().format("YYYY-MM-DD")}', 'day'],
    ['a.ts', '${moment().format("HH:mm")}', 'minute'],
    ['a.py', '{datetime.now()}', 'minute'],
    ['a.py', '{datetime.utcnow().isoformat()}', 'minute'],
    ['a.py', '{date.today()}', 'day'],
    ['a.py', '{datetime.now():%Y-%m-%d}', 'day'],
    ['a.py', '{datetime.now().date()}', 'day'],
    ['a.py', '{time.time()}', 'minute'],
    ['a.py', '{time.strftime("%d.%m.%Y")}', 'day'],
    ['a.py', '{pendulum.now()}', 'minute'],
  ],
  'clock name': [
    ['a.j2', '{{ current_date }}', 'day'],
    ['a.j2', '{{ currentDateTime }}', 'minute'],
    ['a.j2', '{{ CURRENT_TIME }}', 'minute'],
    ['a.j2', '{{ today }}', 'day'],
    ['a.j2', '{{ todays_date }}', 'day'],
    ['a.j2', '{{ timestamp }}', 'minute'],
    ['a.j2', '{{ weekday }}', 'day'],
    ['a.j2', '{{ system.current_time }}', 'minute'],
    ['a.j2', '{{ date_string }}', 'day'],
    ['a.hbs', '{{CURRENT_DATETIME}}', 'minute'],
  ],
  'random or id call': [
    ['a.j2', '{{ uuid4() }}', 'request'],
    ['a.j2', '{{ choices | random }}', 'request'],
    ['a.j2', '{{ range(9) | list | shuffle }}', 'request'],
    ['a.ts', '${randomUUID()}', 'request'],
    ['a.ts', '${nanoid()}', 'request'],
    ['a.ts', '${Math.random()}', 'request'],
    ['a.py', '{uuid.uuid4()}', 'request'],
    ['a.py', '{random.choice(names)}', 'request'],
    ['a.py', '{secrets.token_hex(8)}', 'request'],
    ['skprompt.txt', '{{math.random}}', 'request'],
  ],
  'id name': [
    ['a.j2', '{{ request_id }}', 'request'],
    ['a.j2', '{{ traceId }}', 'request'],
    ['a.hbs', '{{correlation-id}}', 'request'],
    ['a.hbs', '{{nonce}}', 'request'],
    ['a.hbs', '{{salt}}', 'request'],
    ['a.j2', '{{ meta.run_id }}', 'request'],
  ],
  'what the user asks and what is retrieved': [
    ...['question', 'query', 'input', 'message', 'prompt', 'text', 'context', 'documents', 'docs', 'chunks', 'passages', 'search_results', 'retrieved_pages', 'rag_block', 'userQuestion'].map((n) => ['a.hbs', `{{${n}}}`, 'request'] as const),
  ],
  'history and memory': [...['history', 'chat_history', 'messages', 'memory', 'memories', 'agent_scratchpad', 'summary', 'todo'].map((n) => ['a.j2', `{{ ${n} }}`, 'request'] as const)],
  'examples chosen for the request': [...['selected_examples', 'similar_examples', 'top_k_examples'].map((n) => ['a.j2', `{% for e in ${n} %}{{ e }}{% endfor %}`, 'request'] as const)],
  'counters and budgets': [...['tokens_left', 'remaining_tokens', 'turn_number', 'context_percent', 'cost_so_far', 'loop_count', 'attempts_left'].map((n) => ['a.j2', `{{ ${n} }}`, 'request'] as const)],
  'workspace state that moves': [...['git_status', 'git_diff', 'open_files', 'cursor', 'selection', 'diagnostics'].map((n) => ['a.j2', `{{ ${n} }}`, 'request'] as const)],
};

const wrap: Readonly<Record<string, (source: string) => string>> = {
  py: (s) => `system_prompt = f"""Head ${s}\n${rules}"""\n`,
  ts: (s) => `export const systemPrompt = \`Head ${s}\n${rules}\`;\n`,
};
const fileWith = (path: string, source: string): string => wrap[path.split('.').pop()!]?.(source) ?? `Head ${source}\n${rules}`;

describe('prompt/lint: every kind of breaker', () => {
  before(() => { useCodeReader(parseCode); });

  for (const [row, cases] of Object.entries(rows)) {
    for (const [path, source, volatility] of cases) {
      it(`${row}: ${source} in ${path} is ${volatility}`, () => {
        const result = lint(fileWith(path, source), path);
        assert.equal(result.firstVolatile?.class, volatility, JSON.stringify(result.firstVolatile));
        assert.equal(warnings(result).length, 1, JSON.stringify(result.findings));
      });
    }
  }

  for (const name of ['session_id', 'conversation_id', 'user_name', 'customer.firstName', 'email', 'phone', 'locale', 'language', 'timezone', 'country', 'location', 'weather', 'cwd', 'working_directory', 'branch', 'os', 'shell', 'file_tree', 'tenantId', 'birth_date']) {
    it(`${name} differs between users only`, () => {
      const text = `Head {{ ${name} }}\n${rules}`;
      assert.equal(lint(text, 'a.j2').firstVolatile, null);
      const everyone = lint(text, 'a.j2', true);
      assert.equal(everyone.firstVolatile?.class, 'session');
      assert.deepEqual(warnings(everyone), []);
      assert.deepEqual(everyone.findings.map((f) => [f.code, f.severity]), [['user-value', 'information']]);
    });
  }

  for (const name of ['tools | tojson', 'functions', 'tool_descriptions', 'examples', 'few_shots', 'app_name', 'model', 'max_tokens', 'output_format', 'system_prompt', 'knowledge_cutoff', 'due_date', 'last_updated', 'candidate', 'runtime', 'template', 'timeout', 'updated_at', 'order.date', 'item.time', 'error_count', 'context_window', 'query_language', 'date_format', 'time_limit', 'is_today_enabled']) {
    it(`${name} is not volatile`, () => {
      const result = lint(`Head {{ ${name} }}\n${rules}`, 'a.j2', true);
      assert.equal(result.firstVolatile, null, JSON.stringify(result.firstVolatile));
      assert.deepEqual(warnings(result), []);
    });
  }

  it('counts variants of a flag instead of calling it broken', () => {
    const result = lint(`Head\n{% if question == "x" %}A{% else %}B{% endif %}\n${rules}`, 'a.j2');
    assert.deepEqual(warnings(result), []);
    assert.deepEqual(result.findings.map((f) => f.code), ['variants']);
    assert.match(result.findings[0]!.message, /2 different prefixes/);
  });

  it('hints at a literal date behind a cue phrase and at nothing else', () => {
    const lines = ["Today's date is Monday, 2026-05-04.", 'Current time: 4 May 2026', 'The current date is May 4, 2026', 'current_date=2026-05-04'];
    for (const line of lines) assert.deepEqual(lint(`${line}\n${rules}`, 'a.txt').findings.map((f) => [f.code, f.severity]), [['rendered-date', 'hint']], line);
    const quiet = ['Knowledge cutoff: 2026-05-04', 'For example, today is 2026-05-04', 'version 2023-06-01', 'claude-sonnet-20251001', '3b241101-e2bb-4255-8caf-4136c566a962', 'Copyright 2026', 'such as: current date: 2026-05-04', '10.0.0.1 a1b2c3d4 1757015025'];
    for (const line of quiet) assert.deepEqual(lint(`${line}\n${rules}`, 'a.txt').findings, [], line);
  });

  it('hints at a literal id on a line that names it, and not in examples, fences or sentences', () => {
    const id = '3b241101-e2bb-4255-8caf-4136c566a962';
    for (const line of [`Session ID: ${id}`, `- **request_id**: \`${id}\``, `conversation-id = "${id}"`]) assert.deepEqual(lint(`${line}\n${rules}`, 'a.txt').findings.map((f) => [f.code, f.severity, f.line]), [['rendered-id', 'hint', 1]], line);
    const quiet = [`The session id is ${id}`, `Session ID: ${id}, for example`, `\`\`\`\nSession ID: ${id}\n\`\`\``, `Library id: ${id}`, 'Session ID: 42', `"id": "${id}"`];
    for (const line of quiet) assert.deepEqual(lint(`${line}\n${rules}`, 'a.txt').findings, [], line);
  });
});
