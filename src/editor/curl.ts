import type { WireRequest } from '../probe/dialect/dialect';

/** Stands where the key goes; the shell fills it in. */
export const keyPlaceholder = '$FIRST_TOKEN_API_KEY';

const plainHeaders = new Set(['accept', 'content-type', 'user-agent', 'anthropic-version']);

/**
 * A request as a curl command for a POSIX shell, with no secret in it: the key and every header value that could be one become
 * variables. Make the request with `keyPlaceholder` as its key.
 */
export function curlCommand(request: WireRequest): string {
  const headers = Object.entries(request.headers).map(([name, value]) => `-H ${headerArgument(name, value)}`);
  const body = request.method === 'POST' ? [`--data-raw ${single(request.body)}`] : [];
  return [`curl --no-buffer ${urlArgument(request.url)}`, ...headers, ...body].join(' \\\n  ');
}

function headerArgument(name: string, value: string): string {
  if (value.includes(keyPlaceholder)) return double(`${name}: ${value}`);
  if (plainHeaders.has(name.toLowerCase())) return single(`${name}: ${value}`);
  return double(`${name}: ${variable(name)}`);
}

/** Query values that are not plainly harmless become variables too. */
function urlArgument(text: string): string {
  const [place, query] = text.split(/\?(.*)/s);
  if (!query) return single(text);
  const parts = query.split('&').map((part) => {
    const [name, value = ''] = part.split(/=(.*)/s);
    return /^(alt|api-version|stream)$/i.test(name!) ? part : `${name}=${value.includes(keyPlaceholder) ? keyPlaceholder : variable(name!)}`;
  });
  return double(`${place}?${parts.join('&')}`);
}

function variable(name: string): string {
  return `$${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
}

function single(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Double quotes that let only variables through. */
function double(text: string): string {
  return `"${text.replaceAll(/["\\`]/g, '\\$&').replaceAll(/\$(?![A-Z_])/g, '\\$')}"`;
}
