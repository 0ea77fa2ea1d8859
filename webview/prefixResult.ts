import { count, digits, interval } from '../src/report/format';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const numberIn = (fields: unknown, name: string): number | null => {
  const value = isFields(fields) ? fields[name] : null;
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
};

const kinds: Readonly<Record<string, string>> = { cold: 'cold', warm: 'the same again', changed: 'a later request' };
const marks: Readonly<Record<string, string>> = { yes: '✓ as predicted', less: '✗ less', more: '✗ more' };

/** Predicted and served tokens of a proof of the prefix cache as a table, its head first; null for any other result. */
export function prefixTable(result: unknown): string[][] | null {
  if (!isFields(result) || typeof result['schema'] !== 'string' || !result['schema'].startsWith('first-token/prefix@') || !Array.isArray(result['rows'])) return null;
  const head = ['request', 'answers', 'prompt tokens', 'predicted', 'served', 'told by', 'TTFT p50, ms', '95 % interval', ''];
  return [head, ...result['rows'].filter(isFields).map(rowOf)];
}

function rowOf(row: Fields): string[] {
  const { predicted, served, ttft } = row;
  const tokens = (value: number | null) => (value === null ? '' : count(value));
  const guess = isFields(predicted) && predicted['exact'] !== true ? '≈ ' : '';
  return [
    kinds[String(row['kind'])] ?? String(row['kind']),
    tokens(numberIn(row, 'n')),
    tokens(numberIn(row, 'promptTokens')),
    isFields(predicted) ? `${guess}${tokens(numberIn(predicted, 'tokens'))}` : '',
    isFields(served) ? servedText(served) : 'not told',
    isFields(served) ? (served['from'] === 'metrics' ? 'the server’s counters' : 'the answers') : '',
    numberIn(ttft, 'p50') === null ? 'none' : digits(numberIn(ttft, 'p50')!),
    isFields(ttft) ? interval([numberIn(ttft, 'low'), numberIn(ttft, 'high')]) : '',
    marks[String(row['state'])] ?? '',
  ];
}

function servedText(served: Fields): string {
  const [p50, min, max] = [numberIn(served, 'p50'), numberIn(served, 'min'), numberIn(served, 'max')];
  if (p50 === null) return 'not told';
  return min !== null && max !== null && min !== max ? `${count(p50)} (${count(min)}–${count(max)})` : count(p50);
}
