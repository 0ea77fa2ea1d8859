/** Replicas behind a router, with an autoscaler that starts more of them, slowly. */
import type { Backend, EngineEvent, EngineRequest, Load, Ms, Refusal } from './engine';
import type { Router } from './policy/router';
import type { AutoscaleRule } from './settings';

/** What a fleet is made of. */
export interface FleetOptions {
  readonly replicas: number;
  readonly router: Router;
  /** Makes one replica. */
  readonly replica: () => Backend;
  readonly autoscale: AutoscaleRule | null;
  /** Ms from starting a replica until it serves. */
  readonly startTime: Ms;
  /** A replica that breaks every connection, and a router that does not know. */
  readonly deadReplica: number | null;
}

interface Replica {
  readonly index: number;
  readonly backend: Backend;
  readonly readyAt: Ms;
  /** Since when it has had nothing to do. Null while it works. */
  idleSince: Ms | null;
}

/** How often the autoscaler looks, and how long a replica must be idle to be stopped. */
const lookEvery: Ms = 1000;
const stopAfter: Ms = 10_000;
/** First-token times the autoscaler's mean is over. */
const recent = 20;

/** A backend made of replicas. */
export class Fleet implements Backend {
  readonly #options: FleetOptions;
  #replicas: Replica[] = [];
  #started = 0;
  readonly #owner = new Map<string, { readonly replica: Replica; readonly arrival: Ms; first: boolean }>();
  readonly #lost: { readonly id: string; readonly at: Ms }[] = [];
  readonly #firstTokens: Ms[] = [];
  #lookAt: Ms = Infinity;
  #gone = { prefixQueries: 0, prefixHits: 0, preemptions: 0 };

  constructor(options: FleetOptions) {
    this.#options = options;
    for (let i = 0; i < options.replicas; i++) this.#start(-Infinity);
  }

  /** Replicas that serve or are starting. */
  get size(): number {
    return this.#replicas.length;
  }

  submit(request: EngineRequest, now: Ms): Refusal | null {
    const ready = this.#replicas.filter(({ readyAt }) => readyAt <= now);
    const candidates = ready.map(({ index, backend }) => ({ index, load: backend.load().waiting + backend.load().running }));
    const chosen = this.#options.router.pick(request, candidates);
    const replica = ready.find(({ index }) => index === chosen)!;
    if (this.#options.autoscale && this.#lookAt === Infinity) this.#lookAt = now + lookEvery;
    if (chosen === this.#options.deadReplica) {
      this.#lost.push({ id: request.id, at: now });
      return null;
    }
    const refusal = replica.backend.submit(request, now);
    if (!refusal) {
      replica.idleSince = null;
      this.#owner.set(request.id, { replica, arrival: now, first: true });
    }
    return refusal;
  }

  cancel(id: string, now: Ms): void {
    this.#owner.get(id)?.replica.backend.cancel(id, now);
    this.#owner.delete(id);
  }

  nextAt(): Ms {
    return Math.min(this.#lookAt, this.#lost[0]?.at ?? Infinity, ...this.#replicas.map(({ backend }) => backend.nextAt()));
  }

  advance(now: Ms): EngineEvent[] {
    const events: EngineEvent[] = [];
    for (let at = this.nextAt(); at <= now; at = this.nextAt()) {
      while (this.#lost[0] && this.#lost[0].at <= at) events.push({ type: 'lost', reason: 'The replica is dead.', ...this.#lost.shift()! });
      for (const replica of this.#replicas) {
        if (replica.backend.nextAt() <= at) for (const event of replica.backend.advance(at)) events.push(this.#seen(event, replica));
      }
      if (this.#lookAt <= at) this.#look(at);
    }
    return events;
  }

  load(): Load {
    const loads = this.#replicas.map(({ backend }) => backend.load());
    const sum = (of: (load: Load) => number): number => loads.reduce((total, load) => total + of(load), 0);
    return {
      waiting: sum(({ waiting }) => waiting),
      running: sum(({ running }) => running),
      seats: sum(({ seats }) => seats),
      kvUsage: sum(({ kvUsage }) => kvUsage) / loads.length,
      prefixQueries: this.#gone.prefixQueries + sum(({ prefixQueries }) => prefixQueries),
      prefixHits: this.#gone.prefixHits + sum(({ prefixHits }) => prefixHits),
      preemptions: this.#gone.preemptions + sum(({ preemptions }) => preemptions),
    };
  }

  cachedTokens(prompt: readonly number[], salt: string): number {
    return Math.max(...this.#replicas.map(({ backend }) => backend.cachedTokens(prompt, salt)));
  }

  resetCache(): void {
    for (const { backend } of this.#replicas) backend.resetCache();
  }

  #start(readyAt: Ms): void {
    this.#replicas.push({ index: this.#started++, backend: this.#options.replica(), readyAt, idleSince: null });
  }

  #seen(event: EngineEvent, replica: Replica): EngineEvent {
    const owner = this.#owner.get(event.id);
    if (event.type === 'tokens' && owner) {
      if (owner.first) {
        this.#firstTokens.push(event.at - owner.arrival);
        if (this.#firstTokens.length > recent) this.#firstTokens.shift();
        owner.first = false;
      }
      if (event.last) this.#owner.delete(event.id);
    }
    return event.type === 'scheduled' ? { ...event, replica: replica.index } : event;
  }

  #look(now: Ms): void {
    const rule = this.#options.autoscale!;
    if (this.#signal(rule) > rule.limit && this.size < rule.max && this.#replicas.every(({ readyAt }) => readyAt <= now)) {
      this.#start(now + this.#options.startTime);
    }
    this.#stopIdle(rule, now);
    const { waiting, running } = this.load();
    this.#lookAt = waiting + running > 0 || this.size > rule.min ? now + lookEvery : Infinity;
  }

  #signal({ signal }: AutoscaleRule): number {
    if (signal === 'queue') return this.load().waiting / this.size;
    return this.#firstTokens.length === 0 ? 0 : this.#firstTokens.reduce((sum, ms) => sum + ms, 0) / this.#firstTokens.length;
  }

  #stopIdle(rule: AutoscaleRule, now: Ms): void {
    for (const replica of this.#replicas) {
      const { waiting, running } = replica.backend.load();
      if (waiting + running > 0 || replica.readyAt > now) replica.idleSince = null;
      else replica.idleSince ??= now;
    }
    const newest = this.#replicas.at(-1)!;
    if (this.size <= rule.min || newest.idleSince === null || now - newest.idleSince < stopAfter) return;
    const { prefixQueries, prefixHits, preemptions } = newest.backend.load();
    this.#gone = { prefixQueries: this.#gone.prefixQueries + prefixQueries, prefixHits: this.#gone.prefixHits + prefixHits, preemptions: this.#gone.preemptions + preemptions };
    this.#replicas = this.#replicas.slice(0, -1);
  }
}
