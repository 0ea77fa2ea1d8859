/** The codes of findings on prompt files: part of the stable interface of `first-token lint --json`, each with one sentence of meaning. */

/** How much a finding matters. */
export type Severity = 'warning' | 'information' | 'hint';

/** Every code with what it means, in plain words. */
export const findingCodes = {
  clock: 'The current date or time stands before static text, so the cached prefix ends there each day or minute.',
  random: 'A value that is new at each call (random number, fresh id, nonce) stands before static text.',
  command: 'The output of a command stands before static text and may differ each time the prompt is loaded.',
  'request-value': 'A value that belongs to one request (question, retrieved text, request id, history, counter) stands before static text.',
  'user-value': 'A value that belongs to one user, session or workspace stands before static text, so users cannot share what follows.',
  'unknown-value': 'Nothing tells how often this value changes; the static text behind it is reusable only while it keeps its value.',
  variants: 'A condition that may differ from request to request makes several prefixes; each is cached on its own.',
  'rendered-date': 'A literal date or time stands behind words such as “current date”: it looks like the output of a template.',
  'rendered-id': 'A literal id stands on a line such as “Session ID: …”: it looks like the output of a template.',
  'hidden-date': 'The chat template of the server writes the current date or time into every prompt, before the text of the file.',
  syntax: 'The template cannot be read at this place; the rest of the file is analysed all the same.',
  'byte-order-mark': 'The file begins with a byte order mark, which a host may send as the first bytes of the prompt.',
  'trailing-space': 'Lines of the template end in spaces, which an editor may strip: the stripped prompt is another prefix.',
  'unicode-form': 'Characters are written in decomposed form (NFD), so the same text typed elsewhere is another prefix.',
  'image-before-text': 'An image stands before static text of its message, so another image makes that text another prefix.',
  'marker-after-dynamic': 'A cache marker stands behind a place that changes, so what it caches is not found again.',
  'too-many-markers': 'There are more cache markers than the provider allows.',
  'ttl-order': 'A marker with a longer time to live stands behind one with a shorter.',
  'look-back': 'More blocks lie between two cache markers than the provider looks back.',
  'no-marker': 'The provider caches only what a marker asks for, and the prompt has none.',
  'under-minimum': 'The static part has fewer tokens than the provider caches at all.',
  'variable-in-static-message': 'A changing value stands in the same message as static text, and the rule reuses only whole messages.',
  'unsorted-tools': 'The tools are not sorted by name, or come in another order than in the request before.',
  'key-order': 'JSON keys stand in another order than in the request before, so the same values are another prefix.',
  'mixed-line-ends': 'Lines end in both LF and CRLF, so hosts that normalise them differently do not share a prefix.',
} as const satisfies Record<string, string>;

/** A code of this list. */
export type FindingCode = keyof typeof findingCodes;
