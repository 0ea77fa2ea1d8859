/**
 * The simulator's own tokenizer: no vocabulary file, every id computed from the piece, so ids are stable across runs and machines and
 * text → tokens → text loses nothing. Pieces are at most four letters or three digits with an optional leading space, one punctuation
 * mark, a run of line breaks or spaces, or two bytes of a character outside ASCII (so a character may need two tokens, as with real ones).
 */

const encoder = new TextEncoder();

const letters = 26;
const letterStart = 200_000;
/** Ids for words of 1..4 letters: counts of all shorter words come first. */
const wordOffset = [0, 0, letters, letters + letters ** 2, letters + letters ** 2 + letters ** 3];
const wordCount = letters + letters ** 2 + letters ** 3 + letters ** 4;
const digitStart = 100_000;
const digitOffset = [0, 0, 10, 110];
const digitCount = 1110;
const pairStart = 1000;
const byteStart = 300;
const blankStart = 110_000;
const maxBlank = 16;
const punctuationStart = 120_000;

/** Marks a chat template puts between messages. They are never made from text a user wrote. */
export const special = { begin: 1, messageStart: 2, messageEnd: 3, endOfText: 4, think: 5, endThink: 6 } as const;

const specialText: Readonly<Record<number, string>> = {
  [special.begin]: '<|begin|>',
  [special.messageStart]: '<|start|>',
  [special.messageEnd]: '<|end|>',
  [special.endOfText]: '<|eos|>',
  [special.think]: '<think>',
  [special.endThink]: '</think>',
};

const piecePattern = / ?(?:[A-Z][a-z]{0,3}|[a-z]{1,4})| ?[0-9]{1,3}|\n{1,16}| {1,16}(?! ?[A-Za-z0-9!-/:-@[-`{-~])| ?[!-/:-@[-`{-~]| |[\s\S]/gu;

/** Token ids of `text`, in order. */
export function tokenize(text: string): number[] {
  const ids: number[] = [];
  for (const piece of text.match(piecePattern) ?? []) pushPiece(ids, piece);
  return ids;
}

const specialIds = new Map(Object.entries(specialText).map(([id, text]) => [text, Number(id)]));
const specialPattern = /(<\|begin\|>|<\|start\|>|<\|end\|>|<\|eos\|>|<think>|<\/think>)/;

/** Token ids of a text that a chat template rendered: the template's marks become their own tokens again. */
export function tokenizeRendered(text: string): number[] {
  return text.split(specialPattern).flatMap((part) => specialIds.get(part) ?? tokenize(part));
}

function pushPiece(ids: number[], piece: string): void {
  const spaced = piece.length > 1 && piece.startsWith(' ') && piece[1] !== ' ';
  const body = spaced ? piece.slice(1) : piece;
  const first = body.charCodeAt(0);
  if (isLetter(first)) ids.push(letterStart + (spaced ? wordCount : 0) + (first < 97 ? 2 * wordCount : 0) + wordNumber(body.toLowerCase()));
  else if (first >= 48 && first <= 57) ids.push(digitStart + (spaced ? digitCount : 0) + (digitOffset[body.length] ?? 0) + Number(body));
  else if (first === 10) ids.push(blankStart + body.length);
  else if (first === 32) ids.push(blankStart + 100 + body.length);
  else if (first > 32 && first < 127) ids.push(punctuationStart + (spaced ? 128 : 0) + first);
  else pushBytes(ids, body);
}

function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90);
}

function wordNumber(word: string): number {
  let number = 0;
  for (let i = 0; i < word.length; i++) number = number * letters + (word.charCodeAt(i) - 97);
  return number + (wordOffset[word.length] ?? 0);
}

function pushBytes(ids: number[], character: string): void {
  const bytes = encoder.encode(character);
  for (let i = 0; i < bytes.length; i += 2) {
    const high = bytes[i]!;
    const low = bytes[i + 1];
    ids.push(low === undefined ? byteStart + high : pairStart + high * 256 + low);
  }
}

/** The bytes one token stands for; a token may hold part of a character. Unknown ids and the end of text give no bytes. */
export function tokenBytes(id: number): Uint8Array {
  if (id >= pairStart && id < pairStart + 65_536) return Uint8Array.of((id - pairStart) >> 8, (id - pairStart) & 255);
  if (id >= byteStart && id < byteStart + 256) return Uint8Array.of(id - byteStart);
  return encoder.encode(pieceOf(id));
}

function pieceOf(id: number): string {
  if (id >= letterStart) return wordPiece(id - letterStart);
  if (id >= punctuationStart) return punctuationPiece(id - punctuationStart);
  if (id >= blankStart) return blankPiece(id - blankStart);
  if (id >= digitStart) return digitPiece(id - digitStart);
  return id === special.endOfText ? '' : (specialText[id] ?? '');
}

function wordPiece(offset: number): string {
  const form = Math.floor(offset / wordCount);
  if (form > 3) return '';
  let rest = offset % wordCount;
  let length = 4;
  while (length > 1 && rest < wordOffset[length]!) length -= 1;
  rest -= wordOffset[length]!;
  let word = '';
  for (let i = 0; i < length; i++) {
    word = String.fromCharCode(97 + (rest % letters)) + word;
    rest = Math.floor(rest / letters);
  }
  if (form >= 2) word = word[0]!.toUpperCase() + word.slice(1);
  return (form % 2 === 1 ? ' ' : '') + word;
}

function digitPiece(offset: number): string {
  const spaced = offset >= digitCount;
  const rest = offset % digitCount;
  const length = rest >= digitOffset[3]! ? 3 : rest >= digitOffset[2]! ? 2 : 1;
  return (spaced ? ' ' : '') + String(rest - digitOffset[length]!).padStart(length, '0');
}

function blankPiece(offset: number): string {
  const spaces = offset > 100;
  const count = spaces ? offset - 100 : offset;
  return count > 0 && count <= maxBlank ? (spaces ? ' ' : '\n').repeat(count) : '';
}

function punctuationPiece(offset: number): string {
  return (offset >= 128 ? ' ' : '') + String.fromCharCode(offset % 128);
}

/** Text of `ids`; marks of the chat template appear as their names. */
export function detokenize(ids: readonly number[]): string {
  const decoder = new TextDecoder();
  return ids.map((id) => decoder.decode(tokenBytes(id), { stream: true })).join('') + decoder.decode();
}

/** One message as the chat template sees it. */
export interface TemplateMessage {
  readonly role: string;
  readonly text: string;
}

/** Tokens of a conversation: begin, then `start role newline text end newline` per message, then the opening of the answer. */
export function renderChat(messages: readonly TemplateMessage[], tools: string | null = null, openAnswer = true): number[] {
  const ids: number[] = [special.begin];
  if (tools !== null) pushMessage(ids, { role: 'tools', text: tools });
  for (const message of messages) pushMessage(ids, message);
  if (openAnswer) ids.push(special.messageStart, ...tokenize('assistant\n'));
  return ids;
}

function pushMessage(ids: number[], message: TemplateMessage): void {
  ids.push(special.messageStart, ...tokenize(`${message.role}\n`));
  for (const id of tokenize(message.text)) ids.push(id);
  ids.push(special.messageEnd, ...tokenize('\n'));
}

/** A message of content blocks as the chat template sees it. */
export interface BlockMessage {
  readonly role: string;
  readonly blocks: readonly string[];
}

/** The same tokens as `renderChat` gives for the blocks' joined texts, up to how pieces meet, with the position behind each block. */
export function renderBlocks(messages: readonly BlockMessage[]): { readonly prompt: number[]; readonly ends: number[][] } {
  const prompt: number[] = [special.begin];
  const ends = messages.map(({ role, blocks }) => {
    prompt.push(special.messageStart, ...tokenize(`${role}\n`));
    const own = blocks.map((text) => {
      for (const id of tokenize(text)) prompt.push(id);
      return prompt.length;
    });
    prompt.push(special.messageEnd, ...tokenize('\n'));
    return own;
  });
  prompt.push(special.messageStart, ...tokenize('assistant\n'));
  return { prompt, ends };
}
