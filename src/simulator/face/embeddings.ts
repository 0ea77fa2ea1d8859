/** The encoder's paths: /v1/embeddings, /pooling, /rerank and /classify. */
import { classify, dot, embed } from '../encoder';
import { special, tokenize } from '../splitter';
import { fieldsOf, invalid, optionalCount, optionalString, type Fields } from './bodyFields';
import { jsonReply, type RawRequest, type Reply } from './face';
import type { PlainRoute, ServerView } from './persona';

/** The encoder's routes. Each answers when its padded batch has been computed. */
export const encoderRoutes: readonly PlainRoute[] = [
  { method: 'POST', path: /^(?:\/v1)?\/embeddings$/, answer: embeddings },
  { method: 'POST', path: /^\/pooling$/, answer: pooling },
  { method: 'POST', path: /^(?:\/v[12])?\/rerank$/, answer: rerank },
  { method: 'POST', path: /^\/classify$/, answer: classes },
];

function readInputs(body: Fields, field = 'input'): number[][] {
  const value = body[field];
  const list: unknown[] = Array.isArray(value) && typeof value[0] !== 'number' ? value : [value];
  if (list.length === 0) throw invalid(field, `${field}: at least one text is expected.`);
  return list.map((entry) => {
    if (typeof entry === 'string') return [special.begin, ...tokenize(entry)];
    if (Array.isArray(entry) && entry.length > 0 && entry.every((id) => Number.isInteger(id))) return entry as number[];
    throw invalid(field, `${field}: a text, token ids, or a list of these is expected.`);
  });
}

function usage(inputs: readonly (readonly number[])[]): Record<string, number> {
  const tokens = inputs.reduce((sum, ids) => sum + ids.length, 0);
  return { prompt_tokens: tokens, total_tokens: tokens };
}

async function embeddings(request: RawRequest, server: ServerView): Promise<Reply> {
  const body = fieldsOf(request.body);
  const inputs = readInputs(body);
  const wanted = optionalCount(body, 'dimensions');
  const format = optionalString(body, 'encoding_format') ?? 'float';
  if (format !== 'float' && format !== 'base64') throw invalid('encoding_format', 'encoding_format: float or base64 is expected.');
  await server.encode(inputs.map((ids) => ids.length));
  const bits = server.settings.hardware.weightBits;
  const data = inputs.map((ids, index) => {
    const vector = embed(ids, bits).slice(0, wanted ?? undefined);
    return { object: 'embedding', index, embedding: format === 'float' ? vector : Buffer.from(Float32Array.from(vector).buffer).toString('base64') };
  });
  return jsonReply(200, { object: 'list', data, model: server.settings.servedModel, usage: usage(inputs) });
}

async function pooling(request: RawRequest, server: ServerView): Promise<Reply> {
  const inputs = readInputs(fieldsOf(request.body));
  await server.encode(inputs.map((ids) => ids.length));
  const data = inputs.map((ids, index) => ({ object: 'pooling', index, data: embed(ids, server.settings.hardware.weightBits) }));
  return jsonReply(200, { id: 'pool-simulated', object: 'list', model: server.settings.servedModel, data, usage: usage(inputs) });
}

async function rerank(request: RawRequest, server: ServerView): Promise<Reply> {
  const body = fieldsOf(request.body);
  const query = readInputs(body, 'query')[0]!;
  const texts: unknown = body.documents;
  if (!Array.isArray(texts) || texts.length === 0) throw invalid('documents', 'documents: a list of texts is expected.');
  const documents = readInputs(body, 'documents');
  const top = optionalCount(body, 'top_n') ?? documents.length;
  await server.encode(documents.map((ids) => ids.length + query.length));
  const bits = server.settings.hardware.weightBits;
  const target = embed(query, bits);
  const results = documents.map((ids, index) => ({ index, document: { text: String(texts[index]) }, relevance_score: (1 + dot(target, embed(ids, bits))) / 2 }));
  results.sort((a, b) => b.relevance_score - a.relevance_score);
  const total = documents.reduce((sum, ids) => sum + ids.length + query.length, 0);
  return jsonReply(200, { id: 'rerank-simulated', model: server.settings.servedModel, usage: { total_tokens: total }, results: results.slice(0, top) });
}

const labels = ['LABEL_0', 'LABEL_1', 'LABEL_2'];

async function classes(request: RawRequest, server: ServerView): Promise<Reply> {
  const inputs = readInputs(fieldsOf(request.body));
  await server.encode(inputs.map((ids) => ids.length));
  const data = inputs.map((ids, index) => {
    const probs = classify(ids, labels.length, server.settings.hardware.weightBits);
    return { index, label: labels[probs.indexOf(Math.max(...probs))], probs, num_classes: labels.length };
  });
  return jsonReply(200, { id: 'classify-simulated', object: 'list', model: server.settings.servedModel, data, usage: usage(inputs) });
}
