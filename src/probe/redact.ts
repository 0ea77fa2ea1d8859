/** Takes secrets out of text before it is shown, logged or saved. */

/** Replaces every secret of one run, in plain, URL-encoded and Base64 form, by `[redacted]`. */
export type Redact = (text: string) => string;

const shortest = 6;

/** A redactor for these secrets: the key, header values, query values. Texts shorter than 6 characters are not taken for secrets. */
export function createRedactor(secrets: readonly (string | null | undefined)[]): Redact {
  const forms = new Set<string>();
  for (const secret of secrets) {
    const bare = (secret ?? '').replace(/^(Bearer|Basic|Token)\s+/i, '').trim();
    if (bare.length < shortest) continue;
    for (const form of [bare, encodeURIComponent(bare), Buffer.from(bare).toString('base64').replace(/=+$/, '')]) forms.add(form);
  }
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((redacted, secret) => redacted.replaceAll(secret, '[redacted]'), text);
}

const harmless = new Set(['accept', 'accept-encoding', 'accept-language', 'anthropic-version', 'content-type', 'user-agent', 'x-title']);

/** The secrets in a request: every header value but those that are no secret by their name, and every value of the query. */
export function secretsOf(url: string, headers: Readonly<Record<string, string>>): string[] {
  const query = [...new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? '').values()].filter((value) => !/^(sse|true|false|\d{4}-\d{2}-\d{2}(-preview)?)$/.test(value));
  const values = Object.entries(headers).flatMap(([name, value]) => (harmless.has(name.toLowerCase()) ? [] : [value]));
  return [...query, ...values];
}
