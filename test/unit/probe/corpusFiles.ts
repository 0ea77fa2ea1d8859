import * as fs from 'node:fs';
import * as path from 'node:path';
import type { DialectId } from '../../../src/probe/dialect/dialect';

/** The recorded streams and socket recordings that may lie beside the checkout; tests that need them are skipped by name without. */
export const corpusRoot = path.join(__dirname, '..', '..', '..', '..', 'shared');

/** Path of a corpus folder, or null when it is not there. */
export function corpusFolder(name: 'streams' | 'recordings'): string | null {
  const folder = path.join(corpusRoot, name);
  return fs.existsSync(path.join(folder, 'EXPECTED.jsonl')) ? folder : null;
}

export function readRows<T>(file: string): T[] {
  return fs.readFileSync(file, 'utf8').split('\n').filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as T);
}

/** Which dialect a corpus folder speaks; null = an API this project does not speak, or none. */
export const dialectOfFolder: Readonly<Record<string, DialectId | null>> = {
  'anthropic-messages': 'anthropic',
  'azure-openai-chat': 'azure',
  'bedrock-converse': 'bedrock',
  'bedrock-invoke': null,
  'cohere-v1': null,
  'cohere-v2': 'cohere',
  deepseek: 'openai-chat',
  'gemini-json-array': 'gemini',
  'gemini-sse': 'gemini',
  groq: 'openai-chat',
  'http-errors': null,
  'llamacpp-openai': 'openai-chat',
  'llamacpp-native': 'llamacpp',
  mistral: 'openai-chat',
  'ollama-ndjson': 'ollama',
  'ollama-openai': 'openai-chat',
  'openai-chat': 'openai-chat',
  'openai-completions': 'openai-completions',
  'openai-dialects': 'openai-chat',
  'openai-responses': 'openai-responses',
  openrouter: 'openai-chat',
  'sglang-openai': 'openai-chat',
  'sse-misc': null,
  'tgi-native': 'tgi',
  'tgi-openai': 'openai-chat',
  'vllm-openai': 'openai-chat',
};

/** The dialect of a corpus file: its folder's, but for legacy completions among vLLM's chats. */
export function dialectOfFile(file: string): DialectId | null {
  const [folder = '', name = ''] = file.split('/');
  return folder === 'vllm-openai' && name.includes('completions') ? 'openai-completions' : (dialectOfFolder[folder] ?? null);
}
