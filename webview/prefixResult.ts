import { proofKinds } from '../src/report/proof';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const numberIn = (fields: unknown, name: string): number | null => {
  const value = isFields(fields) ? fields[name] : null;
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
};

const kinds: Readonly<Record<string, string>> = proofKinds;
// As in the sentences beside the table.
const count = (n: number): string => Math.round(n).toLocaleString('en-US');
const marks: Readonly<Record<string, string>> = { yes: '✓ as predicted', less: '✗ less', more: '✗ more' };

/** The sentences of a proof that answer what was asked beside served tokens: affinity and expiry. They stand at the table. */
export function besideServed(sentence: string): boolean {
  return /^(Affinity|Expiry)\b/.test(sentence);
}

/** Predicted and served tokens of a proof of the prefix cache as a table, its head first; null for any other result. How long each waited stands with the percentiles. */
export function prefixTable(result: unknown): string[][] | null {
  if (!isFields(result) || typeof result['schema'] !== 'string' || !result['schema'].startsWith('first-token/prefix@') || !Array.isArray(result['rows'])) return null;
  const head = ['request', 'n', 'prompt tokens', 'predicted', 'served', ''];
  return [head, ...result['rows'].filter(isFields).map(rowOf)];
}

function rowOf(row: Fields): string[] {
  const { predicted, served } = row;
  const tokens = (value: number | null) => (value === null ? '' : count(value));
  const guess = isFields(predicted) && predicted['exact'] !== true ? '≈ ' : '';
  return [
    kinds[String(row['kind'])] ?? String(row['kind']),
    tokens(numberIn(row, 'n')),
    tokens(numberIn(row, 'promptTokens')),
    isFields(predicted) ? `${guess}${tokens(numberIn(predicted, 'tokens'))}` : '',
    // Who told it stands in the sentences.
    isFields(served) ? servedText(served) : 'not told',
    marks[String(row['state'])] ?? '',
  ];
}

function servedText(served: Fields): string {
  const [p50, min, max] = [numberIn(served, 'p50'), numberIn(served, 'min'), numberIn(served, 'max')];
  if (p50 === null) return 'not told';
  return min !== null && max !== null && min !== max ? `${count(p50)} (${count(min)}–${count(max)})` : count(p50);
}
