/** The types of a prompt: as sent (`ChatPrompt`) and as written in a file with exact offsets (`Prompt`). */

/** Who speaks. */
export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool';

/** A prompt ready to be sent: plain text in roles. What `probe/` takes. */
export interface ChatPrompt {
  readonly messages: readonly { readonly role: Role; readonly text: string }[];
  /** Tool definitions in the OpenAI function form, or none. */
  readonly tools: readonly unknown[];
}
