import type { LabLoad } from '../src/report/messages';
import { el, setText, show } from './element';
import { flagsOf, type LabChoice } from './labSettings';

type Change = () => void;

/** Ids must be unique in the page, and there are two servers. */
let made = 0;

/** A labelled control. */
function field(label: string, control: HTMLInputElement | HTMLSelectElement, unit = ''): HTMLElement {
  made += 1;
  control.id = `lab-${made}`;
  return el('div', { class: 'lab-field' }, el('label', { for: control.id }, label), el('span', { class: 'lab-control' }, control, unit === '' ? null : el('span', { class: 'muted' }, unit)));
}

function numberInput(least: number, most: number, step: number | 'any', changed: Change): HTMLInputElement {
  return el('input', { class: 'input', type: 'number', min: least, max: most, step, required: true, on: { input: changed } });
}

function select(options: readonly (readonly [value: string, text: string])[], changed: Change): HTMLSelectElement {
  return el('select', { class: 'select', on: { change: changed } }, ...options.map(([value, text]) => el('option', { value }, text)));
}

function checkbox(changed: Change): HTMLInputElement {
  return el('input', { type: 'checkbox', on: { change: changed } });
}

/** One of the two servers: its policy, what belongs to it, and the rest in a fold. */
export class ChoiceForm {
  readonly element: HTMLElement;
  readonly #flags = el('code', { class: 'lab-flags' });
  readonly #problem = el('p', { class: 'lab-problem', role: 'alert' });
  readonly #serves = el('p', { class: 'muted', role: 'status' });
  readonly #inputs;
  readonly #only: readonly (readonly [HTMLElement, (choice: LabChoice) => boolean])[];

  constructor(name: 'A' | 'B', changed: Change, actions: { readonly copy: (text: string) => void; readonly serve: (flags: readonly string[]) => void }) {
    const edited = (): void => {
      this.#update();
      changed();
    };
    const number = (least: number, most: number, step: number | 'any' = 1): HTMLInputElement => numberInput(least, most, step, edited);
    const inputs = {
      policy: select([['continuous', 'Continuous'], ['chunked', 'Continuous, chunked prefill'], ['request-level', 'Request-level'], ['timed', 'Timed batches'], ['speculative', 'Speculative decoding'], ['split', 'Prefill and decode apart']], edited),
      maxRunning: number(1, 1024), chunk: number(1, 100_000), batchSize: number(1, 1024), batchTimeout: number(1, 100_000), batchCost: number(0, 100_000), drafts: number(1, 16), acceptance: number(0, 1, 'any'),
      prefillReplicas: number(1, 64), decodeReplicas: number(1, 64), queue: number(0, 100_000), order: select([['first-come', 'first come'], ['fair', 'fair between tenants']], edited), prefixCache: checkbox(edited),
      replicas: number(1, 64), router: select([['round-robin', 'round robin'], ['least-queue', 'least queue'], ['prefix-affinity', 'prefix affinity']], edited), spill: number(0, 1000),
      model: select([], edited), gpu: select([], edited), tensorParallel: number(1, 64), weightBits: number(1, 32), kvBits: number(1, 32),
    };
    this.#inputs = inputs;
    const fields = {
      chunk: field('Chunk', inputs.chunk, 'tokens a step'), batchSize: field('Batch', inputs.batchSize, 'requests'), batchTimeout: field('or after', inputs.batchTimeout, 'ms'), batchCost: field('Time of a batch', inputs.batchCost, 'ms (0: the model’s)'),
      drafts: field('Drafts', inputs.drafts, 'tokens a step'), acceptance: field('Accepted', inputs.acceptance, 'chance'), prefillReplicas: field('Prefill', inputs.prefillReplicas, 'replicas'), decodeReplicas: field('Decode', inputs.decodeReplicas, 'replicas'),
      replicas: field('Replicas', inputs.replicas), router: field('Router', inputs.router), spill: field('Spill-over', inputs.spill, 'requests more'),
    };
    const timed = (c: LabChoice): boolean => c.policy === 'timed';
    const several = (c: LabChoice): boolean => c.policy !== 'split' && c.replicas > 1;
    this.#only = [
      [fields.chunk, (c) => c.policy === 'chunked'], [fields.batchSize, timed], [fields.batchTimeout, timed], [fields.batchCost, (c) => timed(c) || c.policy === 'request-level'], [fields.drafts, (c) => c.policy === 'speculative'], [fields.acceptance, (c) => c.policy === 'speculative'],
      [fields.prefillReplicas, (c) => c.policy === 'split'], [fields.decodeReplicas, (c) => c.policy === 'split'], [fields.replicas, (c) => c.policy !== 'split'], [fields.router, several], [fields.spill, (c) => several(c) && c.router === 'prefix-affinity'],
    ];
    const button = (text: string, label: string, act: () => void): HTMLElement => el('button', { type: 'button', class: 'tool', title: label, 'aria-label': `${label} (${name})`, on: { click: act } }, text);
    this.element = el('fieldset', { class: 'lab-side' }, el('legend', {}, `Server ${name}`),
      el('div', { class: 'lab-fields' }, field('Policy', inputs.policy), field('At a time', inputs.maxRunning, 'sequences'), fields.chunk, fields.batchSize, fields.batchTimeout, fields.batchCost, fields.drafts, fields.acceptance, fields.prefillReplicas, fields.decodeReplicas, field('Model', inputs.model), field('GPU', inputs.gpu)),
      el('details', {}, el('summary', {}, 'More'), el('div', { class: 'lab-fields' },
        fields.replicas, fields.router, fields.spill, field('Waiting at most', inputs.queue, 'requests (0: no bound)'), field('Order', inputs.order), field('Prefix cache', inputs.prefixCache), field('GPUs a replica', inputs.tensorParallel), field('Weights', inputs.weightBits, 'bits'), field('Keys and values', inputs.kvBits, 'bits'))),
      this.#problem,
      el('div', { class: 'lab-command' }, this.#flags, el('span', { class: 'lab-buttons' }, button('Copy', 'Copy the command', () => actions.copy(this.#command())), button('Real time', 'Start it as the demo endpoint, in real time', () => actions.serve(flagsOf(this.read()))))),
      this.#serves);
    this.problem('');
    this.serves('');
  }

  /** Fills the lists of models and GPUs, keeping what is chosen. */
  offer(models: readonly string[], gpus: readonly string[]): void {
    const { model, gpu } = this.read();
    this.#inputs.model.replaceChildren(...models.map((value) => el('option', { value }, value)));
    this.#inputs.gpu.replaceChildren(...gpus.map((value) => el('option', { value }, value)));
    this.#inputs.model.value = model;
    this.#inputs.gpu.value = gpu;
  }

  /** Shows a choice. */
  write(choice: LabChoice): void {
    for (const [name, input] of Object.entries(this.#inputs) as [keyof LabChoice, HTMLInputElement | HTMLSelectElement][]) {
      const value = choice[name];
      if (typeof value === 'boolean') (input as HTMLInputElement).checked = value;
      else {
        // Before the lists are known they hold just what is chosen.
        if (input instanceof HTMLSelectElement && ![...input.options].some((option) => option.value === value)) input.append(el('option', { value: String(value) }, String(value)));
        input.value = String(value);
      }
    }
    this.#update();
  }

  /** The choice as it stands. */
  read(): LabChoice {
    const i = this.#inputs;
    const number = (input: HTMLInputElement): number => Number(input.value);
    return {
      policy: i.policy.value as LabChoice['policy'], maxRunning: number(i.maxRunning), chunk: number(i.chunk), batchSize: number(i.batchSize), batchTimeout: number(i.batchTimeout), batchCost: number(i.batchCost), drafts: number(i.drafts), acceptance: number(i.acceptance),
      prefillReplicas: number(i.prefillReplicas), decodeReplicas: number(i.decodeReplicas), queue: number(i.queue), order: i.order.value as LabChoice['order'], prefixCache: i.prefixCache.checked, replicas: number(i.replicas), router: i.router.value as LabChoice['router'], spill: number(i.spill),
      model: i.model.value, gpu: i.gpu.value, tensorParallel: number(i.tensorParallel), weightBits: number(i.weightBits), kvBits: number(i.kvBits),
    };
  }

  /** Says what is wrong with this server; '' takes it back. */
  problem(message: string): void {
    setText(this.#problem, message);
    show(this.#problem, message !== '');
  }

  /** Says that it runs as the demo endpoint; '' takes it back. */
  serves(message: string): void {
    setText(this.#serves, message);
    show(this.#serves, message !== '');
  }

  #command(): string {
    return ['first-token simulate', ...flagsOf(this.read())].join(' ');
  }

  #update(): void {
    const choice = this.read();
    for (const [element, applies] of this.#only) {
      show(element, applies(choice));
      // What is hidden must not keep the form from being sent.
      for (const input of element.querySelectorAll('input')) input.disabled = !applies(choice);
    }
    setText(this.#flags, this.#command());
    this.problem('');
    this.serves('');
  }
}

/** What both servers get. */
export class LoadForm {
  readonly element: HTMLElement;
  readonly #inputs;
  readonly #only: readonly (readonly [HTMLElement, (load: LabLoad) => boolean])[];
  readonly #problem = el('p', { class: 'lab-problem', role: 'alert' });
  #seed = 1;

  constructor(changed: Change) {
    const edited = (): void => {
      this.#update();
      changed();
    };
    const number = (least: number, most: number, step: number | 'any' = 1): HTMLInputElement => numberInput(least, most, step, edited);
    const inputs = {
      kind: select([['users', 'a number of users'], ['rate', 'a rate']], edited), users: number(1, 1000), perSecond: number(0, 10_000, 'any'), requests: number(1, 2000), promptTokens: number(1, 100_000), outputTokens: number(1, 20_000),
      lengths: select([['equal', 'all the same'], ['mixed', 'every other an eighth'], ['spread', 'spread around it']], edited), longPromptTokens: number(0, 100_000), sharedTokens: number(0, 100_000), groups: number(1, 1000), tenants: select([['one', 'one'], ['heavy-light', 'a heavy and a light one']], edited),
    };
    this.#inputs = inputs;
    const users = field('Users', inputs.users, 'at once');
    const rate = field('Rate', inputs.perSecond, 'requests/s');
    const groups = field('Different heads', inputs.groups);
    this.#only = [[users, (load) => load.arrivals.kind === 'users'], [rate, (load) => load.arrivals.kind === 'rate'], [groups, (load) => load.sharedTokens > 0]];
    this.element = el('fieldset', { class: 'lab-load' }, el('legend', {}, 'Load, the same for both'), el('div', { class: 'lab-fields' },
      field('Requests come from', inputs.kind), users, rate, field('Requests', inputs.requests), field('Prompt', inputs.promptTokens, 'tokens'), field('Answer', inputs.outputTokens, 'tokens'), field('Answer lengths', inputs.lengths),
      field('Every tenth prompt', inputs.longPromptTokens, 'tokens (0: none)'), field('Shared head', inputs.sharedTokens, 'tokens'), groups, field('Tenants', inputs.tenants)), this.#problem);
    this.problem('');
  }

  /** Shows a load. */
  write(load: LabLoad): void {
    const i = this.#inputs;
    i.kind.value = load.arrivals.kind;
    i.users.value = String(load.arrivals.kind === 'users' ? load.arrivals.users : 16);
    i.perSecond.value = String(load.arrivals.kind === 'rate' ? load.arrivals.perSecond : 10);
    for (const name of ['requests', 'promptTokens', 'outputTokens', 'lengths', 'longPromptTokens', 'sharedTokens', 'groups', 'tenants'] as const) i[name].value = String(load[name]);
    this.#seed = load.seed;
    this.#update();
  }

  /** The load as it stands. */
  read(): LabLoad {
    const i = this.#inputs;
    const number = (input: HTMLInputElement): number => Number(input.value);
    return {
      arrivals: i.kind.value === 'users' ? { kind: 'users', users: number(i.users) } : { kind: 'rate', perSecond: number(i.perSecond) },
      requests: number(i.requests), promptTokens: number(i.promptTokens), outputTokens: number(i.outputTokens), lengths: i.lengths.value as LabLoad['lengths'],
      longPromptTokens: number(i.longPromptTokens), sharedTokens: number(i.sharedTokens), groups: number(i.groups), tenants: i.tenants.value as LabLoad['tenants'], seed: this.#seed,
    };
  }

  /** Says what is wrong with the load; '' takes it back. */
  problem(message: string): void {
    setText(this.#problem, message);
    show(this.#problem, message !== '');
  }

  #update(): void {
    const load = this.read();
    for (const [element, applies] of this.#only) {
      show(element, applies(load));
      for (const input of element.querySelectorAll('input')) input.disabled = !applies(load);
    }
    this.problem('');
  }
}
