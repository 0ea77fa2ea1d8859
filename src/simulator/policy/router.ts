/** Which replica gets a request. */
import type { EngineRequest } from '../engine';
import { blockSize, chainName } from '../kvCache';

/** A replica as the router sees it. */
export interface Candidate {
  readonly index: number;
  /** Requests waiting and running there. */
  readonly load: number;
}

/** Picks one of the candidates, of which there is at least one. */
export interface Router {
  readonly name: string;
  pick(request: EngineRequest, candidates: readonly Candidate[]): number;
}

/** One after the other. */
export function roundRobin(): Router {
  let turn = 0;
  return { name: 'round-robin', pick: (_request, candidates) => candidates[turn++ % candidates.length]!.index };
}

/** The one with the fewest requests; the first of equals. */
export function leastQueue(): Router {
  return { name: 'least-queue', pick: (_request, candidates) => leastLoaded(candidates).index };
}

function leastLoaded(candidates: readonly Candidate[]): Candidate {
  return candidates.reduce((best, candidate) => (candidate.load < best.load ? candidate : best));
}

/** Prefixes a router remembers; older ones are forgotten first. */
const memory = 100_000;

/**
 * The replica that was sent the longest part of this prompt before, unless it has `spill` more requests than the least loaded one,
 * which then gets the request and the prefix. A prompt nobody has seen goes to the least loaded.
 */
export function prefixAffinity(spill: number): Router {
  const sentTo = new Map<string, number>();
  return {
    name: 'prefix-affinity',
    pick: ({ prompt, salt }, candidates) => {
      const chains: string[] = [];
      for (let index = 0; (index + 1) * blockSize <= prompt.length; index++) chains.push(chainName(chains.at(-1) ?? salt, prompt, index));
      const least = leastLoaded(candidates);
      const known = chains.findLast((chain) => candidates.some(({ index }) => index === sentTo.get(chain)));
      const favourite = known === undefined ? least : candidates.find(({ index }) => index === sentTo.get(known))!;
      const chosen = favourite.load - least.load >= spill ? least : favourite;
      for (const chain of chains) {
        sentTo.delete(chain);
        sentTo.set(chain, chosen.index);
      }
      for (const chain of sentTo.keys()) {
        if (sentTo.size <= memory) break;
        sentTo.delete(chain);
      }
      return chosen.index;
    },
  };
}
