/** Carries proofs out against simulated servers in virtual time. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Answer } from '../../../../src/probe/detect';
import { dialects } from '../../../../src/probe/dialect/index';
import type { CacheDiagnosis, DialectId } from '../../../../src/probe/dialect/dialect';
import { endpointFromUrl } from '../../../../src/probe/endpoint';
import { createMemory } from '../../../../src/probe/memory';
import { defaultNetwork, defaultTimeouts } from '../../../../src/probe/network';
import { bodyOf } from '../../../../src/probe/requestBody';
import { run } from '../../../../src/probe/run';
import { prefixProof, type PrefixResult, type PrefixRow, type ProofOptions } from '../../../../src/probe/scenario/prefix';
import { planProof, type PlannedProof } from '../../../../src/probe/scenario/prefixPrediction';
import type { StepRun } from '../../../../src/probe/scenario/scenario';
import { cachedTokensBetween, parseScrape } from '../../../../src/probe/serverMetrics';
import * as prompt from '../../../../src/prompt/index';
import { proofPair, ruleArithmetic } from '../../../../src/prompt/proofPair';
import { sloPresets } from '../../../../src/report/goodput';
import type { Sample } from '../../../../src/report/sample';
import { tokenize } from '../../../../src/simulator/splitter';
import { virtualWorld, type VirtualWorld } from '../../simulator/virtualWorld';

import { defaultProbeSettings, type Target } from '../../../../src/probe/plan';

/** The simulator's own tokenizer, so that only the chat template's tokens are guessed. */
const simulated: prompt.TokenCounter = { source: 'tokenizer.json', exact: true, count: (text) => tokenize(text).length, encode: tokenize };

const fixture = (name: string) => readFileSync(path.join(__dirname, '../../../fixtures/workspace', name), 'utf8');

/** A simulated server and the rule that it is proved against. */
export interface Server {
  readonly flags: string;
  readonly api: DialectId;
  readonly server: string;
  readonly rule: string;
  readonly model?: string;
}

export function targetOf({ api, server, model = 'llama-3.1-8b' }: Server): Target {
  return { endpoint: endpointFromUrl(`http://127.0.0.1:9${api === 'bedrock' ? '' : '/v1'}`), dialect: dialects[api], model, server, key: null, timeouts: defaultTimeouts, network: defaultNetwork, memory: createMemory() };
}

/** Plans the proof of a fixture, or of a text under a name. */
export async function plan(server: Server, world: VirtualWorld, file: string | { readonly name: string; readonly text: string }, pairs: number): Promise<PlannedProof> {
  const { name, text } = typeof file === 'string' ? { name: file, text: fixture(file) } : file;
  await prompt.prepare([name]);
  const parsed = prompt.parsePromptFile(text, name);
  assert.ok(parsed);
  const rule = prompt.ruleNamed(server.rule);
  const analysed = prompt.analyseFile(parsed, { rule, today: '2026-12-01' });
  const post = async (url: string, body: unknown): Promise<Answer> => {
    const answer = await world.server.exchange({ method: 'POST', path: new URL(url).pathname, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    return { status: answer.status ?? 0, headers: [], text: Buffer.concat(answer.writes.map(({ bytes }) => bytes)).toString() };
  };
  const subject = { ...proofPair(prompt, analysed, 0), rule: ruleArithmetic(prompt, rule, server.model ?? 'llama-3.1-8b', server.model && server.api !== 'anthropic' ? simulated : prompt.bytesCounter) };
  const target = targetOf(server);
  return await planProof(target, { pairs, subject: () => subject }, { post, bodyOf: (one) => bodyOf(target, one) });
}

/** Carries the scenario out in one virtual world, so that the cache lives from step to step. */
export async function prove(server: Server, file: Parameters<typeof plan>[2], more: Partial<ProofOptions> & { readonly pairs?: number; readonly ignoreNonce?: boolean } = {}): Promise<{ result: PrefixResult; planned: PlannedProof; samples: Sample[]; sent: string[] }> {
  const world = virtualWorld(server.flags.split(' ').filter((flag) => flag !== ''));
  const planned = await plan(server, world, file, more.pairs ?? 3);
  const target = targetOf(server);
  const scrape = async () => {
    const answer = await world.server.exchange({ method: 'GET', path: '/metrics' });
    return parseScrape(Buffer.concat(answer.writes.map(({ bytes }) => bytes)).toString());
  };
  const steps = prefixProof({ planned, affinity: 0, expiry: [], ...more }).steps({ target, settings: defaultProbeSettings, slo: sloPresets.chat, objective: 'chat', maxModelLen: null });
  const all: Sample[] = [];
  const sent: string[] = [];
  const recorder = await world.open();
  const seams = { ...world, open: () => Promise.resolve({ ...recorder, record: (...[request, onPart, signal]: Parameters<typeof recorder.record>) => (sent.push(request.request.body), recorder.record(request, onPart, signal)) }) };
  let next = steps.next();
  while (!next.done) {
    const { plan: wanted, countsCached } = next.value;
    const shots = more.ignoreNonce ? { ...wanted, shots: wanted.shots.map((shot) => ({ ...shot, nonce: null })) } : wanted;
    const before = countsCached ? await scrape() : null;
    const samples: Sample[] = [];
    const told = new Map<string, { id: string | null; diagnosis: CacheDiagnosis | null }>();
    const running = run(shots, seams, new AbortController().signal);
    for (let step = await running.next(); ; step = await running.next()) {
      if (step.done) break;
      if (step.value.type !== 'sample') continue;
      const { sample, decoded, shot } = step.value;
      samples.push(sample);
      if (shot.compareWith !== undefined) told.set(sample.id, { id: decoded.answerId, diagnosis: decoded.diagnosis });
    }
    all.push(...samples);
    const ran: StepRun = { samples, told, stopped: null, client: { loopUse: null, clockErrorP99: null, lateP99: null }, texts: new Map(), elapsed: world.now(), ...(before ? { counted: cachedTokensBetween(before, await scrape()) } : {}) };
    next = steps.next(ran);
  }
  return { result: next.value.result, planned, samples: all, sent };
}

export const rowOf = (result: PrefixResult, kind: PrefixRow['kind']): PrefixRow => {
  const row = result.rows.find((one) => one.kind === kind);
  assert.ok(row);
  return row;
};
