/** Every server the simulator can look like. */
import { openaiChat } from './openaiChat';
import { openaiCompletions } from './openaiCompletions';
import { modelsRoute } from './openaiModels';
import type { Persona } from './persona';
import { vllmRoutes } from './vllm';

const vllm: Persona = {
  id: 'vllm',
  faces: [openaiChat, openaiCompletions],
  plain: [modelsRoute('vllm', (maxContext) => ({ max_model_len: maxContext })), ...vllmRoutes],
  flavour: { server: 'vllm', reasoningField: 'reasoning_content' },
};

const personas: readonly Persona[] = [vllm];

/** The server of that name. Throws when there is none (the arguments were not checked). */
export function personaOf(id: string): Persona {
  const found = personas.find((persona) => persona.id === id);
  if (!found) throw new Error(`There is no face ${id}.`);
  return found;
}
