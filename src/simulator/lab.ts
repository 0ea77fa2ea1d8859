/** One load on one simulated server in virtual time: what the lab page compares. Pure; a busy load takes a second or two, so run it in a worker. */
import { assemble } from './assemble';
import { parseSimulatorArgs } from './arguments';
import { gpus, models } from './model';
import { seededRandom } from './seededRandom';
import { closedLoop, runVirtual, type VirtualArrival, type VirtualResult } from './virtual';

/** Who sends what. Lengths in tokens. */
export interface LabLoad {
  /** `users`: each sends its next request when its last one is answered. `rate`: Poisson arrivals, whatever is still under way. */
  readonly arrivals: { readonly kind: 'users'; readonly users: number } | { readonly kind: 'rate'; readonly perSecond: number };
  readonly requests: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** `equal`: all answers have that length; `mixed`: every other one has an eighth of it; `spread`: log-normal around it. */
  readonly lengths: 'equal' | 'mixed' | 'spread';
  /** Every tenth prompt has so many tokens instead; 0 = none. */
  readonly longPromptTokens: number;
  /** So many tokens at a prompt's head are shared by all prompts of its group; 0 = none. */
  readonly sharedTokens: number;
  /** Groups that share a head. */
  readonly groups: number;
  /** `heavy-light`: nine of ten requests come from one tenant, the rest from another. */
  readonly tenants: 'one' | 'heavy-light';
  readonly seed: number;
}

/** The load cannot be run in the lab; the message says what to lower. */
export class LabError extends Error {
  override readonly name = 'LabError';
}

/** Names for the lists of the page. */
export const labModels: readonly string[] = models.map(({ name }) => name);
/** Names for the lists of the page. */
export const labGpus: readonly string[] = gpus.map(({ name }) => name);

const mostRequests = 2000;
const mostAnswerTokens = 400_000;
const mostPromptTokens = 8_000_000;

/** Runs the load on a server with these flags (as `first-token simulate` takes them). Throws an ArgumentError for the flags, a LabError for the load. */
export function runLab(flags: readonly string[], load: LabLoad): VirtualResult[] {
  check(load);
  const settings = parseSimulatorArgs(flags);
  const backend = assemble(settings);
  const make = arrivalOf(load);
  if (load.arrivals.kind === 'users') {
    const { arrivals, onDone } = closedLoop(load.arrivals.users, load.requests, make);
    return runVirtual(backend, arrivals, { onDone });
  }
  const random = seededRandom(load.seed);
  let at = 0;
  const arrivals = Array.from({ length: load.requests }, (_, i): VirtualArrival => {
    const arrival = { at, ...make(i) };
    // Waits between the events of a Poisson process are exponential.
    at += (-Math.log(1 - random()) * 1000) / perSecondOf(load);
    return arrival;
  });
  return runVirtual(backend, arrivals);
}

function perSecondOf({ arrivals }: LabLoad): number {
  return arrivals.kind === 'rate' ? arrivals.perSecond : 1;
}

function arrivalOf(load: LabLoad): (index: number) => Omit<VirtualArrival, 'at'> {
  const random = seededRandom(load.seed + 1);
  const outputs = Array.from({ length: load.requests }, (_, i) => outputOf(load, i, random));
  const group = seededRandom(load.seed + 2);
  const groups = Array.from({ length: load.requests }, () => Math.floor(group() * load.groups));
  return (index) => {
    const long = load.longPromptTokens > 0 && index % 10 === 9;
    const promptTokens = long ? load.longPromptTokens : load.promptTokens;
    return {
      id: String(index + 1),
      promptTokens,
      outputTokens: outputs[index]!,
      sharedPrefix: Math.min(load.sharedTokens, promptTokens),
      prefix: `group ${groups[index]!}`,
      tenant: load.tenants === 'one' ? '' : index % 10 === 0 ? 'light' : 'heavy',
    };
  };
}

function outputOf({ lengths, outputTokens }: LabLoad, index: number, random: () => number): number {
  if (lengths === 'equal') return outputTokens;
  if (lengths === 'mixed') return index % 2 === 0 ? Math.max(1, Math.round(outputTokens / 8)) : outputTokens;
  const sigma = 0.8;
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.min(8 * outputTokens, Math.max(1, Math.round(outputTokens * Math.exp(sigma * normal - sigma ** 2 / 2))));
}

function check(load: LabLoad): void {
  const whole = (name: string, value: number, least: number, most: number): void => {
    if (!Number.isInteger(value) || value < least || value > most) throw new LabError(`${name} must be a whole number from ${least} to ${most}; it is ${value}.`);
  };
  whole('The number of requests', load.requests, 1, mostRequests);
  whole('The length of a prompt', load.promptTokens, 1, 100_000);
  whole('The length of an answer', load.outputTokens, 1, 20_000);
  whole('The length of the long prompts', load.longPromptTokens, 0, 100_000);
  whole('The shared head', load.sharedTokens, 0, 100_000);
  whole('The number of groups', load.groups, 1, 1000);
  if (load.arrivals.kind === 'users') whole('The number of users', load.arrivals.users, 1, 1000);
  else if (!(load.arrivals.perSecond > 0 && load.arrivals.perSecond <= 10_000)) throw new LabError(`The rate must be above 0 and up to 10000 requests a second; it is ${load.arrivals.perSecond}.`);
  const answers = load.requests * load.outputTokens;
  if (answers > mostAnswerTokens) throw new LabError(`${load.requests} answers of ${load.outputTokens} tokens are more than the lab draws (${mostAnswerTokens} tokens): lower one of them.`);
  const prompts = load.requests * Math.max(load.promptTokens, load.longPromptTokens / 10);
  if (prompts > mostPromptTokens) throw new LabError(`${load.requests} prompts of that length are more than the lab holds (${mostPromptTokens} tokens): lower one of them.`);
}
