import type * as vscode from 'vscode';

/** The log channel, with secrets taken out of everything written to it. */
export interface Log {
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
  show(): void;
  /** A secret that must never appear in the log, whatever writes it. */
  hide(secret: string): void;
}

/** Wraps a channel. */
export function createLog(channel: vscode.LogOutputChannel): Log {
  const secrets = new Set<string>();
  const clean = (text: string) => redact(text, secrets);
  return {
    info: (text) => channel.info(clean(text)),
    warn: (text) => channel.warn(clean(text)),
    error: (text) => channel.error(clean(text)),
    show: () => channel.show(),
    hide: (secret) => {
      if (secret.length >= 4) secrets.add(secret);
    },
  };
}

const patterns: readonly [RegExp, string][] = [
  [/\b(Bearer|Basic)\s+[^\s"',;]+/gi, '$1 …'],
  [/\b((?:x-)?(?:api|goog-api|subscription)-?key|authorization|cookie|set-cookie|proxy-authorization)(["']?\s*[:=]\s*["']?)[^\s"',;]+/gi, '$1$2…'],
  [/([?&](?:key|api[-_]?key|token|access_token|sig|signature|code)=)[^&\s"'#]+/gi, '$1…'],
  [/\b(?:sk|pk|rk|gsk|hf|xai|nvapi|r8)[-_][A-Za-z0-9_-]{12,}/g, '…'],
  [/(\/\/[^/\s:@]+:)[^/\s@]+@/g, '$1…@'],
];

/** Takes known secrets and everything that looks like one out of a text. */
export function redact(text: string, secrets: Iterable<string>): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, '…');
  for (const [pattern, replacement] of patterns) clean = clean.replace(pattern, replacement);
  return clean;
}
