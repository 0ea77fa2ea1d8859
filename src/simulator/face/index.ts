/** Every server the simulator can look like. */
import { anthropic, anthropicRoutes } from './anthropic';
import { azure } from './azure';
import { bedrock } from './bedrock';
import { cohere, cohereRoutes } from './cohere';
import { encoderRoutes } from './embeddings';
import { gemini, geminiRoutes } from './gemini';
import { llamacpp, llamacppRoutes, refuseLikeLlamacpp } from './llamacpp';
import { ollama, ollamaRoutes } from './ollama';
import { openaiChat } from './openaiChat';
import { openaiCompletions } from './openaiCompletions';
import { modelsRoute } from './openaiModels';
import { openaiResponses } from './openaiResponses';
import type { Persona } from './persona';
import { refuseLikeSglang, sglang, sglangRoutes } from './sglang';
import { tgi, tgiRoutes } from './tgi';
import { triton, tritonRoutes } from './triton';
import { vllmRoutes } from './vllm';

const openaiFaces = [openaiChat, openaiCompletions, openaiResponses] as const;

const vllm: Persona = {
  id: 'vllm',
  faces: [...openaiFaces, anthropic],
  plain: [modelsRoute('vllm', (maxContext) => ({ max_model_len: maxContext })), ...vllmRoutes, ...encoderRoutes],
  flavour: { server: 'vllm', reasoningField: 'reasoning_content' },
};

const personas: readonly Persona[] = [
  vllm,
  {
    id: 'sglang',
    faces: [...openaiFaces, sglang],
    plain: [modelsRoute('sglang', (maxContext) => ({ max_model_len: maxContext })), ...sglangRoutes, ...encoderRoutes],
    flavour: { server: 'sglang', reasoningField: 'reasoning_content' },
    refuse: refuseLikeSglang,
  },
  {
    id: 'llamacpp',
    faces: [llamacpp, ...openaiFaces, anthropic],
    plain: [modelsRoute('llamacpp', (maxContext) => ({ meta: { n_ctx_train: maxContext } })), ...llamacppRoutes, ...encoderRoutes],
    flavour: { server: 'llamacpp', reasoningField: 'reasoning_content' },
    refuse: refuseLikeLlamacpp,
    headers: { server: 'llama.cpp' },
  },
  {
    id: 'tgi',
    faces: [tgi, openaiChat, openaiCompletions],
    plain: [modelsRoute('text-generation-inference'), ...tgiRoutes],
    flavour: { server: 'tgi', reasoningField: 'reasoning' },
    headers: { 'x-compute-type': '1-simulated' },
  },
  {
    id: 'ollama',
    faces: [ollama, ...openaiFaces],
    plain: [modelsRoute('library'), ...ollamaRoutes, ...encoderRoutes],
    flavour: { server: 'ollama', reasoningField: 'reasoning' },
  },
  { id: 'triton', faces: [triton], plain: tritonRoutes, flavour: { server: 'triton', reasoningField: 'reasoning' } },
  {
    id: 'openai',
    faces: [...openaiFaces],
    plain: [modelsRoute('system'), ...encoderRoutes],
    flavour: { server: 'openai', reasoningField: 'reasoning' },
    breakpoints: true,
    headers: {
      'openai-version': '2020-10-01',
      'x-ratelimit-limit-requests': '10000',
      'x-ratelimit-remaining-requests': '9999',
      'x-ratelimit-reset-requests': '6ms',
    },
  },
  { id: 'azure', faces: [azure], plain: [], flavour: { server: 'azure', reasoningField: 'reasoning_content' } },
  { id: 'anthropic', faces: [anthropic], plain: anthropicRoutes, flavour: { server: 'anthropic', reasoningField: 'reasoning' }, breakpoints: true },
  { id: 'gemini', faces: [gemini], plain: geminiRoutes, flavour: { server: 'gemini', reasoningField: 'reasoning' } },
  { id: 'cohere', faces: [cohere], plain: cohereRoutes, flavour: { server: 'cohere', reasoningField: 'reasoning' } },
  { id: 'bedrock', faces: [bedrock], plain: [], flavour: { server: 'bedrock', reasoningField: 'reasoning' }, breakpoints: true },
  {
    ...vllm,
    id: 'all',
    faces: [...vllm.faces, azure, llamacpp, tgi, sglang, ollama, triton, gemini, cohere, bedrock],
    plain: [...vllm.plain, ...tgiRoutes, ...sglangRoutes, ...ollamaRoutes, ...tritonRoutes, ...geminiRoutes, ...cohereRoutes, ...llamacppRoutes],
  },
];

/** Names of the servers, for `--face`. */
export const faceNames: readonly string[] = personas.map(({ id }) => id);

/** The server of that name. Throws when there is none (the arguments were not checked). */
export function personaOf(id: string): Persona {
  const found = personas.find((persona) => persona.id === id);
  if (!found) throw new Error(`There is no face ${id}.`);
  return found;
}
