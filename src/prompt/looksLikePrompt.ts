/**
 * Whether a file holds a prompt by its content, whatever its name: a quick look that decides what is worth parsing. Only the shape of a
 * request and texts that speak to a model count, since a lens on any other file would be noise.
 */

/** `request`: a JSON or JSONL body of an API; `template`: a template or settings file; `text`: plain text or Markdown; `code`: strings in code. */
export type PromptContent = 'request' | 'template' | 'text' | 'code';

/** Files larger than that, in UTF-16 units, are not looked into. */
export const largestLook = 1_000_000;

const kinds: readonly (readonly [RegExp, PromptContent])[] = [
  [/\.(?:json|jsonl|ndjson)$/i, 'request'],
  [/\.(?:j2|jinja2?|hbs|handlebars|mustache|liquid|njk|nunjucks|ya?ml)$/i, 'template'],
  [/\.(?:md|mdx|txt)$/i, 'text'],
  [/\.(?:py|[cm]?[jt]sx?)$/i, 'code'],
];
const notLookedInto = /(?:^|\/)(?:package|package-lock|tsconfig|readme|changelog|contributing|license|security|code_of_conduct)[\w.-]*$|\.(?:test|spec|d|min)\.[cm]?[jt]sx?$|(?:^|\/)test_[^/]*$/i;

/** What a file of that name could be, without having read it; null when its content is not looked at. */
export function couldBePrompt(path: string): PromptContent | null {
  const clean = path.replace(/\\/g, '/');
  return notLookedInto.test(clean) ? null : (kinds.find(([name]) => name.test(clean))?.[1] ?? null);
}

/** The kind of prompt a file holds by its content, or null. Never throws. */
export function looksLikePrompt(text: string, path: string): PromptContent | null {
  const kind = couldBePrompt(path);
  if (kind === null || text.length > largestLook) return null;
  const found = { request: isRequestText, template: (one: string) => isTemplate(one, path), text: isInstruction, code: isCode }[kind](text);
  return found ? kind : null;
}

/** How a sentence begins by which a text speaks to a model. */
const speaks = /(?:^|[.!?:>"'`*#}\n])[\s*#_>"'`-]*(?:[Yy]ou(?:['’]re| are) (?:an? |the |now |our |my |[A-Z])|[Yy]our (?:task|job|role|goal|purpose) (?:is\b|:)|[Aa]ct as (?:an? |the ))/;
/** Words of texts for a model that letters, pages and configurations do not have. */
const modelWords = /\b(?:system prompt|language model|LLM|(?:the )?user(?:['’]s)? (?:question|message|request|input|query)|(?:answer|respond|reply) (?:only|with|in|briefly|the (?:question|user))|(?:classify|summari[sz]e|translate|extract|rewrite|triage) (?:the|this|these|each)|you (?:answer|triage|classify|translate|summari[sz]e|help|write|review)|step by step|never (?:invent|guess|make up))\b/i;
const roleMarks = /\{\{-?\s*role\s+["']|_\.role\(|<\|(?:im_start|start_header_id|system|user)\|>|^\s*(?:system|user|assistant):[ \t]*$/m;
const page = /<(?:!doctype|html|head|body|table|div|span|p|td|script)\b/i;

function isTemplate(text: string, path: string): boolean {
  if (/\.ya?ml$/i.test(path)) return (/^messages:[ \t]*(?:#.*)?\r?$/m.test(text) && /^[ \t]*-?[ \t]*role:[ \t]*["']?(?:system|user|developer)\b/m.test(text)) || (/^prompts:/m.test(text) && /^(?:providers|targets):/m.test(text));
  return !page.test(text) && (roleMarks.test(text) || speaks.test(text.slice(0, 4000)) || modelWords.test(text.slice(0, 8000)));
}

/** Prose of its own is a prompt only when it begins by speaking to the model: documentation speaks to people. */
function isInstruction(text: string): boolean {
  const begin = text.replace(/^\ufeff?---\r?\n[^]*?\n---\r?\n/, '').trimStart().slice(0, 200);
  return speaks.test(begin) && !page.test(begin);
}

function isCode(text: string): boolean {
  if (!/["'`]/.test(text)) return false;
  return /["'`]{1,3}\\?\s*[\s*#_>-]*(?:You(?:['’]re| are) |Your (?:task|job|role|goal|purpose) |Act as )/.test(text) || /\b\w*(?:system|user|instruction)s?_?prompt\w*\s*(?::\s*\w+\s*)?=\s*f?["'`(]/i.test(text);
}

function isRequestText(text: string): boolean {
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  if (!/"(?:messages|contents|input)"\s*:/.test(body)) return false;
  const whole = parsed(body);
  if (whole !== undefined) return isBody(whole) || (Array.isArray(whole) && whole.length > 0 && whole.every(isBody));
  // A batch: one request a line. Half-typed JSON is none until it is whole again.
  const line = body.split('\n').find((one) => one.trim() !== '') ?? '';
  return isBody(parsed(line));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

type Json = Readonly<Record<string, unknown>>;
const record = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {});

/** The body of a request, also inside the entry of a batch. A saved conversation has messages too, but no model to send them to. */
function isBody(value: unknown): boolean {
  const outer = record(value);
  return [outer, record(outer['body']), record(outer['params']), record(outer['request'])].some((body) => {
    const { messages, contents, input } = body;
    const addressed = typeof body['model'] === 'string' || 'anthropic_version' in body || 'inferenceConfig' in body || 'max_tokens' in body;
    if (Array.isArray(messages)) return addressed && messages.length > 0 && messages.every((one) => typeof record(one)['role'] === 'string');
    if (Array.isArray(contents)) return contents.length > 0 && contents.every((one) => Array.isArray(record(one)['parts']));
    return typeof body['model'] === 'string' && (typeof input === 'string' ? typeof body['instructions'] === 'string' || 'stream' in body || 'max_output_tokens' in body : Array.isArray(input) && input.some((one) => typeof record(one)['role'] === 'string'));
  });
}
