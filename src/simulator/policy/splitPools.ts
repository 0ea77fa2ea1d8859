import type { Backend, EngineEvent, EngineRequest, Load, Ms, Refusal } from '../engine';
import { kvTransferTime } from '../formula';
import type { Hardware } from '../model';

/** The two pools and the link between them in bytes per second. */
export interface SplitOptions {
  readonly prefill: Backend;
  readonly decode: Backend;
  readonly hardware: Hardware;
  readonly linkBandwidth: number;
}

interface Transfer {
  readonly request: EngineRequest;
  readonly at: Ms;
}

/**
 * Prefill and decode on separate replicas: the first token comes from the prefill pool, then the prompt's keys and values cross a
 * link, then the decode pool takes over; a long prompt never slows anyone's tokens (Zhong et al., "DistServe", OSDI 2024).
 */
export class SplitPools implements Backend {
  readonly #options: SplitOptions;
  readonly #requests = new Map<string, EngineRequest>();
  #transfers: Transfer[] = [];

  constructor(options: SplitOptions) {
    this.#options = options;
  }

  submit(request: EngineRequest, now: Ms): Refusal | null {
    const refusal = this.#options.prefill.submit({ ...request, output: request.output.slice(0, 1) }, now);
    if (!refusal) this.#requests.set(request.id, request);
    return refusal;
  }

  cancel(id: string, now: Ms): void {
    this.#requests.delete(id);
    this.#transfers = this.#transfers.filter(({ request }) => request.id !== id);
    this.#options.prefill.cancel(id, now);
    this.#options.decode.cancel(id, now);
  }

  nextAt(): Ms {
    return Math.min(this.#options.prefill.nextAt(), this.#options.decode.nextAt(), this.#transfers[0]?.at ?? Infinity);
  }

  advance(now: Ms): EngineEvent[] {
    const events: EngineEvent[] = [];
    for (let at = this.nextAt(); at <= now; at = this.nextAt()) {
      for (const event of this.#options.prefill.advance(at)) this.#prefilled(event, events);
      this.#arrived(at, events);
      for (const event of this.#options.decode.advance(at)) this.#decoded(event, events);
    }
    return events;
  }

  #prefilled(event: EngineEvent, events: EngineEvent[]): void {
    const request = this.#requests.get(event.id);
    if (event.type !== 'tokens' || !request) {
      events.push(event);
      return;
    }
    const last = request.output.length === 1;
    events.push({ ...event, last });
    if (last) this.#requests.delete(event.id);
    else {
      const { hardware, linkBandwidth } = this.#options;
      this.#transfers.push({ request, at: event.at + kvTransferTime(hardware, request.prompt.length, linkBandwidth) });
      this.#transfers.sort((a, b) => a.at - b.at);
    }
  }

  #arrived(now: Ms, events: EngineEvent[]): void {
    while (this.#transfers[0] && this.#transfers[0].at <= now) {
      const { request, at } = this.#transfers.shift()!;
      const prompt = [...request.prompt, request.output[0]!];
      const refusal = this.#options.decode.submit({ ...request, prompt, output: request.output.slice(1), received: request.prompt.length }, at);
      if (refusal) events.push({ type: 'lost', id: request.id, at, reason: refusal.message });
    }
  }

  #decoded(event: EngineEvent, events: EngineEvent[]): void {
    if (event.type === 'scheduled') return;
    if (event.type === 'tokens' && event.last) this.#requests.delete(event.id);
    events.push(event.type === 'tokens' ? { ...event, from: event.from + 1 } : event);
  }

  load(): Load {
    const prefill = this.#options.prefill.load();
    const decode = this.#options.decode.load();
    return {
      waiting: prefill.waiting + decode.waiting + this.#transfers.length,
      running: prefill.running + decode.running,
      seats: prefill.seats + decode.seats,
      kvUsage: decode.kvUsage,
      prefixQueries: prefill.prefixQueries,
      prefixHits: prefill.prefixHits,
      preemptions: prefill.preemptions + decode.preemptions,
    };
  }

  cachedTokens(prompt: readonly number[], salt: string): number {
    return this.#options.prefill.cachedTokens(prompt, salt);
  }

  resetCache(): void {
    this.#options.prefill.resetCache();
    this.#options.decode.resetCache();
  }
}
