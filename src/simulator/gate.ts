import type { Backend, EngineEvent, EngineRequest, Load, Ms, Refusal } from './engine';
import type { Admission } from './policy/policy';

/** A backend behind admission policies: the first one that objects refuses the request. */
export class Gate implements Backend {
  readonly #backend: Backend;
  readonly #admissions: readonly Admission[];

  constructor(backend: Backend, admissions: readonly Admission[]) {
    this.#backend = backend;
    this.#admissions = admissions;
  }

  submit(request: EngineRequest, now: Ms): Refusal | null {
    const load = this.#backend.load();
    for (const admission of this.#admissions) {
      const refusal = admission.check(request, load, now);
      if (refusal) return refusal;
    }
    return this.#backend.submit(request, now);
  }

  cancel(id: string, now: Ms): void {
    this.#backend.cancel(id, now);
    for (const admission of this.#admissions) admission.observe?.({ type: 'lost', id, at: now, reason: 'cancelled' });
  }

  nextAt(): Ms {
    return this.#backend.nextAt();
  }

  advance(now: Ms): EngineEvent[] {
    const events = this.#backend.advance(now);
    for (const admission of this.#admissions) if (admission.observe) for (const event of events) admission.observe(event);
    return events;
  }

  load(): Load {
    return this.#backend.load();
  }

  cachedTokens(prompt: readonly number[], salt: string): number {
    return this.#backend.cachedTokens(prompt, salt);
  }

  resetCache(): void {
    this.#backend.resetCache();
  }
}
