import { UsageError } from './command';

/**
 * The API key for a request from the terminal, or null. `FIRST_TOKEN_API_KEY` goes only where the user plainly meant it:
 * to an `--endpoint URL` typed on the command line, to the origin in `FIRST_TOKEN_API_KEY_ORIGIN`, or to loopback.
 * A settings file of a cloned repository can therefore never name the place a key is sent to.
 */
export function keyFor(target: { readonly origin: string; readonly typedUrl: boolean; readonly loopback: boolean }, env: NodeJS.ProcessEnv): { readonly key: string | null; readonly withheld: string | null } {
  // A key read from a file brings its line break along.
  const key = env['FIRST_TOKEN_API_KEY']?.trim();
  if (!key) return { key: null, withheld: null };
  if (!/^[\u0020-\u007e\u0080-\u00ff]+$/.test(key)) throw new UsageError('FIRST_TOKEN_API_KEY holds a character that no HTTP header can carry (a line break, a control character, a letter beyond Latin-1). Copy the key again.');
  const bound = env['FIRST_TOKEN_API_KEY_ORIGIN'];
  if (bound !== undefined && bound !== '') {
    let origin: string;
    try {
      origin = new URL(bound).origin;
    } catch {
      throw new UsageError(`FIRST_TOKEN_API_KEY_ORIGIN is not a URL: "${bound}". Give an origin such as https://api.example.com.`);
    }
    if (origin === target.origin) return { key, withheld: null };
    return { key: null, withheld: `The API key was not sent: FIRST_TOKEN_API_KEY_ORIGIN is ${origin}, this endpoint is ${target.origin}.` };
  }
  if (target.typedUrl || target.loopback) return { key, withheld: null };
  return {
    key: null,
    withheld: `The API key was not sent to ${target.origin}, because the URL comes from a settings file. Set FIRST_TOKEN_API_KEY_ORIGIN=${target.origin} to allow it, or pass --endpoint with the URL.`,
  };
}
