import assert from 'node:assert/strict';
import { caveatSentence } from '../../../src/report/format';

describe('report/format: variables sent as written', () => {
  it('asks for sample inputs where the format has variables, and for text where it has none', () => {
    assert.match(caveatSentence({ kind: 'unrendered-variables', names: ['date'] }), /with a variable as written \(date\).* sample inputs\.$/);
    assert.match(caveatSentence({ kind: 'unrendered-variables', names: ['{{date}}', '{{customer_name}}'] }), /\(\{\{date\}\}, \{\{customer_name\}\}\).* have no variables: write a value in their place/);
  });
});
