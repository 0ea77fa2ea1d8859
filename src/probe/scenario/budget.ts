/** What a scenario has used of its budget over all its steps, and whether the next one fits into the rest. */
import { estimate, PlanError, type BudgetLimits, type ProbePlan } from '../plan';
import type { Stopped, Used } from '../run';

/** A budget that several plans share. */
export class SharedBudget {
  readonly #limits: BudgetLimits;
  #used: Used = { requests: 0, outputTokens: 0, cost: 0 };
  #steps = 0;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  spend(used: Used): void {
    this.#steps += 1;
    this.#used = { requests: this.#used.requests + used.requests, outputTokens: this.#used.outputTokens + used.outputTokens, cost: this.#used.cost + used.cost };
  }

  /** The plan with what is left, or why it cannot be carried out. Throws a PlanError when not even the first step fits. */
  allow(plan: ProbePlan): ProbePlan | Stopped {
    const { requests, outputTokens, cost } = this.#limits;
    const needed = estimate(plan);
    const over =
      this.#short('requests', 'firstToken.probe.maxRequests', requests, this.#used.requests, needed.requests) ??
      this.#short('output tokens', 'firstToken.probe.maxTotalTokens', outputTokens, this.#used.outputTokens, needed.outputTokens) ??
      this.#short(`${needed.cost?.currency ?? ''} of cost`.trim(), 'firstToken.probe.maxCost', cost, this.#used.cost, needed.cost?.value ?? null);
    if (over !== null && this.#steps === 0) throw new PlanError(`The budget is too small for one step: ${over}. Raise it, or ask for less (a lower load, --max-tokens).`, 'firstToken.probe');
    if (over !== null) return { by: 'budget', detail: over };
    const left = (limit: number | null, used: number): number | null => (limit === null ? null : Math.max(0, limit - used));
    return { ...plan, budget: { requests: left(requests, this.#used.requests), outputTokens: left(outputTokens, this.#used.outputTokens), cost: left(cost, this.#used.cost) } };
  }

  #short(what: string, setting: string, limit: number | null, used: number, needed: number | null): string | null {
    if (limit === null || needed === null || used + needed <= limit) return null;
    const amount = (n: number): string => (Number.isInteger(n) ? String(n) : n.toPrecision(3));
    return `${this.#steps === 0 ? 'the first step' : 'the next step'} needs up to ${amount(needed)} ${what}, ${amount(Math.max(0, limit - used))} of ${amount(limit)} are left (${setting})`;
  }
}
