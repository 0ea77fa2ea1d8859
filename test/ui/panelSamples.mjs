// Seeded samples that look like a real run: queue, prefill, a cache hit, reasoning before the answer, one stall, one failure.

/** Small seeded generator (mulberry32), values in [0, 1). */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const thoughts = 'The user asks why first tokens feel slow so I should separate queueing prefill and decoding and then name what a reader notices first '.split(' ').filter(Boolean);
const words = 'Time to first token is the wait a reader feels most . It grows with the prompt , because every token of it is read before the first one is written ; a warm prefix cache skips what it has seen before . After that , pace matters : thirty tokens a second read like speech , and a single long gap is noticed more than a slow but even flow . '.split(' ').filter(Boolean);

/** Text of delta `i` of an answer with `reasoning` leading thoughts. */
export function pieceAt(i, reasoning) {
  return i < reasoning ? `${thoughts[i % thoughts.length]} ` : `${words[(i - reasoning) % words.length]} `;
}

/**
 * Samples of one run. `tokens` is the answer's length, `reasoning` the thoughts before it.
 * Request 3 stalls, request 6 comes from the cache, request `failAt` (0-based, -1 = none) fails.
 */
export function makeSamples({ seed = 1, requests = 12, tokens = 160, reasoning = 24, concurrency = 4, failAt = 8, failure = 'truncated', pace = 31, stall = 640 } = {}) {
  const random = seeded(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const slots = Array.from({ length: concurrency }, () => 0);
  const samples = [];
  const whole = 2 + requests;
  for (let i = 0; i < whole; i += 1) {
    const warmup = i < 2;
    const n = i - 2;
    const slot = slots.indexOf(Math.min(...slots));
    const start = warmup ? -3000 + i * 40 : slots[slot] + 0.2;
    const failed = !warmup && n === failAt;
    const cached = n === 5 || n === 9;
    const ttft = (cached ? 92 : 236 + 28 * normal()) + (n === 7 ? 330 : 0) + (i === 0 ? 420 : 0);
    const sent = start + 0.4;
    const headers = start + Math.min(ttft - 12, 18 + random() * 6);
    let t = start + ttft;
    const deltas = [];
    const visibleChars = [];
    const length = failed ? Math.round(tokens * 0.35) : Math.round(tokens * (0.85 + random() * 0.3));
    for (let d = 0; d < reasoning + length; d += 1) {
      if (d > 0) t += Math.max(1, pace + 2.4 * normal() + (random() < 0.02 ? 26 : 0) + (n === 2 && d === reasoning + 48 ? stall : 0) + (random() < 0.004 ? 120 : 0));
      const k = random() < 0.06 ? 2 : 1;
      deltas.push([t, d < reasoning ? 'reasoning' : 'text', k]);
      visibleChars.push(d < reasoning ? 0 : pieceAt(d, reasoning).length);
    }
    const total = deltas.reduce((sum, [, , k]) => sum + k, 0);
    const last = t;
    if (!warmup) slots[slot] = last + 2;
    samples.push({
      id: `s${i}`, role: warmup ? 'warmup' : 'measured', due: start - 0.2, start, written: start + 0.3, sent, headers, firstFrame: headers + 1, firstToken: deltas[0][0],
      firstVisible: deltas[reasoning]?.[0] ?? null, last, end: last + 1.4,
      connection: { reused: i >= concurrency, dns: null, connected: i < concurrency ? start + 3 : null, secured: i < concurrency ? start + 14 : null, alpn: 'http/1.1' },
      outputTokens: { count: failed ? null : total, source: failed ? null : 'usage-difference' }, streamTokens: failed ? null : total, reasoningTokens: reasoning, n1: deltas[0][2],
      promptTokens: 1920, cachedTokens: cached ? 1904 : 0,
      outcome: failed ? { kind: failure, message: 'The stream ended without a terminal marker.' } : { kind: 'ok' },
      finish: failed ? null : 'stop', deltas, visibleChars, reads: deltas.length, maxDeltasPerRead: 1, bytes: deltas.length * 190,
      serverTimings: [], flags: [], labels: {},
    });
  }
  return samples;
}

/** Samples that all failed before a byte came. */
export function makeFailures(requests = 8) {
  return Array.from({ length: requests }, (_, i) => ({
    id: `s${i}`, role: 'measured', due: i * 12, start: i * 12, written: i * 12 + 0.3, sent: i * 12 + 0.4, headers: i * 12 + 9, firstFrame: null, firstToken: null, firstVisible: null, last: null, end: i * 12 + 10,
    connection: { reused: i > 0, dns: null, connected: null, secured: null, alpn: 'http/1.1' }, outputTokens: { count: null, source: null }, streamTokens: null, reasoningTokens: null, n1: null, promptTokens: null, cachedTokens: null,
    outcome: { kind: 'status', status: 401, message: 'Incorrect API key provided.', raw: '{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}' },
    finish: null, deltas: [], visibleChars: [], reads: 1, maxDeltasPerRead: 0, bytes: 120, serverTimings: [], flags: [], labels: {},
  }));
}
