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
  --json   one JSON object`,
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
    return exitCode.ok;
  },
};
