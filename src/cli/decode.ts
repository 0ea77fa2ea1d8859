import { decodeRecording, UnreadableFile, type DecodedFile } from '../probe/decodeFile';
import { apis } from '../probe/endpoint';
import { exitCode, oneOf, parse, UsageError, type Command } from './command';
import { readInput } from './input';
import { print, printable } from './output';

/** `first-token decode`: what a recorded stream says, without a network. */
export const decodeCommand: Command = {
  summary: 'Decode a recorded stream, socket recording or saved tape',
  usage: `first-token decode FILE [--api A] [--timed] [--json]

  FILE     the body of a streaming answer as it came, or a tape saved by the panel
  --api    the API it was recorded from (default: guessed from the content): ${apis.slice(1).join(', ')}
  --timed  FILE is a socket recording: a JSON line a read, { t, n, b }, HTTP head and chunks included
  --json   one JSON object

Exit code: 0 decoded (a cut stream and an error of the server too), 2 wrong usage, 3 nothing in FILE is an answer. With --json 0
whenever the object is printed: its outcome tells.`,
  async run({ args }) {
    const { values, positionals } = parse(args, { api: { type: 'string' }, timed: { type: 'boolean' }, json: { type: 'boolean' } }, { most: 1, least: 1, what: 'one file to decode' });
    const api = oneOf('--api', values.api, apis) ?? 'auto';
    const file = positionals[0]!;
    const bytes = await readInput(file);
    let decoded: DecodedFile;
    try {
      decoded = await decodeRecording(bytes, api, values.timed === true);
    } catch (error) {
      throw error instanceof UnreadableFile ? new UsageError(`${file}: ${error.message}`) : error;
    }
    if (values.json) {
      await print(`${JSON.stringify(decoded)}\n`);
      return exitCode.ok;
    }
    const { outcome, outputTokens, arrivals } = decoded;
    await print(
      printable([
        decoded.reasoning === '' ? null : `${decoded.reasoning}\n---`,
        decoded.text,
        ...decoded.toolCalls.map((call) => `tool ${call.name}(${call.arguments})`),
        '',
        `outcome ${outcome.kind}${outcome.message === undefined ? '' : `: ${outcome.message.replace(/\s+/g, ' ').slice(0, 200)}`}, finish ${decoded.finish ?? 'none'}`,
        `deltas ${arrivals.text} text, ${arrivals.reasoning} reasoning, ${arrivals.tool} tool, ${arrivals.tokenOnly} without text; ${decoded.frames} frames, ${decoded.comments} comments`,
        `output tokens ${outputTokens.count ?? 'unknown'}${outputTokens.source === null ? '' : ` (${outputTokens.source})`}, prompt ${decoded.promptTokens ?? 'unknown'}, cached ${decoded.cachedTokens ?? 'unknown'}`,
      ]
        .filter((line) => line !== null)
        .join('\n') + '\n'),
    );
    return codeOf(decoded);
  },
};

/** 3 when nothing could be decoded: no delta came out of it, and it is not of this API or holds no frame at all. A stream that broke after a delta was decoded as far as it goes. */
function codeOf({ outcome, arrivals, frames }: DecodedFile): number {
  const anyDelta = Object.values(arrivals).some((n) => n > 0);
  const noFrame = frames === 0 && (outcome.kind === 'empty' || outcome.kind === 'truncated');
  return !anyDelta && (outcome.kind === 'malformed' || noFrame) ? exitCode.noneSucceeded : exitCode.ok;
}
