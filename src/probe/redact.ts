/** Takes secrets out of text before it is shown, logged or saved. */

/** Replaces every secret of one run, in plain, URL-encoded, JSON-escaped and Base64 form, by `[redacted]`. */
export type Redact = (text: string) => string;

const mark = '[redacted]';
/** Shorter texts are no secrets; those under `safeLength` count only as whole words. */
const shortest = 4;
const safeLength = 6;
/** A text that was cut off may end inside a secret: so many of its first characters give it away. */
const tellingStart = 4;
/** Values of headers that are words of HTTP. */
const plainWords = /^(true|false|close|none|auto|keep-alive|gzip|\d{1,5})$/i;

/** A redactor for these secrets: the key, header values, query values. Texts shorter than 4 characters are not taken for secrets. */
export function createRedactor(secrets: readonly (string | null | undefined)[]): Redact {
  const forms = secretForms(secrets, shortest);
  const long = forms.filter((form) => form.length >= safeLength);
  const words = forms.filter((form) => form.length < safeLength).map((form) => new RegExp(`(?<![A-Za-z0-9])${form.replace(/[^A-Za-z0-9]/g, '\\$&')}(?![A-Za-z0-9])`, 'g'));
  return (text) => {
    const whole = long.reduce((redacted, secret) => redacted.replaceAll(secret, mark), text);
    return withoutStart(words.reduce((redacted, word) => redacted.replace(word, mark), whole), long);
  };
}

/** The secrets without their scheme, at least `least` characters long, in every form a server may echo them; longest first. */
export function secretForms(secrets: readonly (string | null | undefined)[], least: number = safeLength): string[] {
  const forms = new Set<string>();
  for (const secret of secrets) {
    const bare = (secret ?? '').replace(/^(Bearer|Basic|Token)\s+/i, '').trim();
    if (bare.length < least || plainWords.test(bare)) continue;
    const escaped = JSON.stringify(bare).slice(1, -1);
    for (const form of [bare, encodeURIComponent(Buffer.from(bare).toString()), escaped, escaped.replaceAll('/', '\\/'), Buffer.from(bare).toString('base64').replace(/=+$/, '')]) forms.add(form);
  }
  return [...forms].sort((a, b) => b.length - a.length);
}

/** A text that was cut off (it ends in …) inside a secret, without what it holds of it. */
function withoutStart(text: string, secrets: readonly string[]): string {
  if (!text.endsWith('…')) return text;
  const body = text.slice(0, -1);
  for (const secret of secrets) {
    for (let length = Math.min(secret.length - 1, body.length); length >= tellingStart; length -= 1) {
      if (body.endsWith(secret.slice(0, length))) return `${body.slice(0, -length)}${mark}…`;
    }
  }
  return text;
}

const harmless = new Set(['accept', 'accept-encoding', 'accept-language', 'anthropic-version', 'content-type', 'user-agent', 'x-title']);

/** The secrets in a request: every header value but those that are no secret by their name, and every value of the query. */
export function secretsOf(url: string, headers: Readonly<Record<string, string>>): string[] {
  const query = [...new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? '').values()].filter((value) => !/^(sse|true|false|\d{4}-\d{2}-\d{2}(-preview)?)$/.test(value));
  const values = Object.entries(headers).flatMap(([name, value]) => (harmless.has(name.toLowerCase()) ? [] : [value]));
  return [...query, ...values];
}
