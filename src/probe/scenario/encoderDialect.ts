/** The encoder APIs of OpenAI, vLLM, Jina, Cohere and TEI as dialects without a stream: what goes in is a batch of texts, what comes out is JSON. */
import type { Dialect, EncoderApi, FrameSink } from '../dialect/dialect';
import { list, object, string } from '../dialect/json';
import { bearer, endpointUrl, post } from '../dialect/request';
import { tellUsage } from '../dialect/openaiUsage';

/** What an encoder answered, an entry an input, in the order of the inputs. */
export interface Encoded {
  readonly vectors?: readonly (readonly number[])[];
  readonly scores?: readonly number[];
  readonly labels?: readonly string[];
}

const paths: Readonly<Record<EncoderApi, readonly [tail: string, prefix: string | null]>> = { embeddings: ['/embeddings', '/v1'], pooling: ['/pooling', null], rerank: ['/rerank', null], classify: ['/classify', null] };

/** The dialect of an encoder API. The messages of a prompt are its inputs; for `rerank` the first is the query. The decoded text is an {@link Encoded} as JSON. */
export function encoderDialect(api: EncoderApi): Dialect {
  const [tail, prefix] = paths[api];
  return {
    id: api,
    framing: 'sse',
    optional: [],
    request(input) {
      const texts = input.prompt.messages.map((message) => message.text);
      const body = api === 'rerank' ? { model: input.model, query: texts[0] ?? '', documents: texts.slice(1) } : { model: input.model, input: texts };
      return post(endpointUrl(input.url, tail, prefix), input, { ...bearer(input.key), accept: 'application/json' }, body);
    },
    reader: (sink) => ({ read: () => false, whole: (json) => tell(api, json, sink), endsAtClose: true }),
  };
}

function tell(api: EncoderApi, json: unknown, sink: FrameSink): boolean {
  const encoded = read(api, json);
  if (encoded === null) return false;
  sink.delta('text', JSON.stringify(encoded));
  const usage = object(json)?.['usage'];
  if (usage !== undefined && usage !== null) tellUsage(sink, usage, null);
  sink.finish('stop');
  return true;
}

function read(api: EncoderApi, json: unknown): Encoded | null {
  if (api === 'rerank') return scores(json);
  const data = list(object(json)?.['data'] ?? json);
  if (data.length === 0) return null;
  const inOrder = [...data].sort((a, b) => Number(object(a)?.['index'] ?? 0) - Number(object(b)?.['index'] ?? 0));
  if (api === 'classify') return { labels: inOrder.map(labelOf) };
  const vectors = inOrder.map((entry) => vector(object(entry)?.['embedding'] ?? object(entry)?.['data'] ?? entry));
  return vectors.every((v) => v !== null) ? { vectors } : null;
}

/** Numbers, numbers in base64 (32-bit floats), or a row of numbers a token, which are averaged. */
function vector(value: unknown): number[] | null {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value, 'base64');
    return Array.from({ length: Math.floor(bytes.length / 4) }, (_, i) => bytes.readFloatLE(i * 4));
  }
  const rows = list(value);
  if (rows.length > 0 && rows.every((n) => typeof n === 'number')) return rows as number[];
  const nested = rows.map(vector);
  const [first] = nested;
  if (first === undefined || first === null || nested.some((row) => row?.length !== first.length)) return null;
  return first.map((_, i) => nested.reduce((sum, row) => sum + row![i]!, 0) / nested.length);
}

function scores(json: unknown): Encoded | null {
  const results = list(object(json)?.['results'] ?? object(json)?.['data'] ?? json);
  const found = results.map((entry) => ({ index: Number(object(entry)?.['index']), score: Number(object(entry)?.['relevance_score'] ?? object(entry)?.['score']) }));
  if (found.length === 0 || found.some(({ index, score }) => !Number.isInteger(index) || !Number.isFinite(score))) return null;
  return { scores: [...found].sort((a, b) => a.index - b.index).map(({ score }) => score) };
}

/** `{ label }`, or a list of `{ label, score }` whose best counts. */
function labelOf(entry: unknown): string {
  if (!Array.isArray(entry)) return string(object(entry)?.['label']);
  return string(object([...(entry as unknown[])].sort((a, b) => Number(object(b)?.['score'] ?? 0) - Number(object(a)?.['score'] ?? 0))[0])?.['label']);
}
