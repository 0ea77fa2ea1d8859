/** The server's desk: finds the face for a request, hands it to the engine, and words what comes back. It knows no socket and no clock of its own. */
import { randomBytes } from 'node:crypto';
import { AnswerMemory } from './answerMemory';
import { composeAnswer, Speaker, type Answer, type Piece } from './answer';
import { Delivery, type Timeline, type Wire } from './delivery';
import { EncoderQueue, encodeTime } from './encoder';
import type { EngineEvent, EngineRequest, Load, Refusal } from './engine';
import { personaOf } from './face';
import { header, jsonReply, Refused, type Ask, type End, type Face, type GenerateRoute, type Problem, type RawRequest, type Reply, type ServerTimes, type Tally, type Voice } from './face/face';
import type { Persona, ServerView } from './face/persona';
import { drawFaults, findFault, hasField, parseFaults, retryAfterHeaders, type Fault } from './faults';
import { Ledger } from './ledger';
import { seededRandom } from './seededRandom';
import type { SimulatorSettings, Tenant } from './settings';
import { TruthStore, type Truth } from './truth';

/** An engine that is driven by some clock, real or virtual. */
export interface Driver extends Timeline {
  /** The clock time of the engine's virtual time `at`, ms. */
  clockTime(at: number): number;
  submit(request: EngineRequest, listener: (event: EngineEvent) => void): Refusal | null;
  cancel(id: string): void;
  load(): Load;
  resetCache(): void;
}

/** A request as it came over HTTP. `target` is path and query. */
export interface Arrived {
  readonly method: string;
  readonly target: string;
  readonly headers: RawRequest['headers'];
  readonly text: string;
}

/** One request on its way through the server. */
interface Visit {
  readonly id: string;
  readonly arrival: number;
  readonly raw: RawRequest;
  readonly face: Face;
  readonly route: GenerateRoute;
  readonly faults: readonly Fault[];
  readonly wire: Wire;
}

/** One simulated server. */
export class Desk implements ServerView {
  readonly settings: SimulatorSettings;
  readonly ledger = new Ledger();
  readonly #engine: Driver;
  readonly #encoder = new EncoderQueue();
  readonly #persona: Persona;
  readonly #truths = new TruthStore();
  readonly #memory = new AnswerMemory();
  readonly #random: () => number;
  readonly #tenantByKey: ReadonlyMap<string, Tenant>;

  constructor(settings: SimulatorSettings, engine: Driver) {
    this.settings = settings;
    this.#engine = engine;
    this.#persona = personaOf(settings.face);
    this.#random = seededRandom(settings.seed);
    this.#tenantByKey = new Map(settings.tenants.flatMap((tenant) => tenant.keys.map((key) => [key, tenant])));
  }

  load(): Load {
    return this.#engine.load();
  }

  resetCache(): void {
    this.#engine.resetCache();
  }

  async encode(lengths: readonly number[]): Promise<void> {
    const { hardware, paddedBatches, speed } = this.settings;
    const done = this.#encoder.enqueue(this.#engine.now(), encodeTime(hardware, lengths, paddedBatches) / speed);
    await new Promise<void>((resolve) => this.#engine.wake(done, resolve));
  }

  /** Takes one request. Whatever happens ends on `wire`; a mistake of the simulator itself must reach the client as one, not end the process. */
  async handle(arrived: Arrived, wire: Wire): Promise<void> {
    const url = new URL(arrived.target, 'http://simulator');
    const found = this.#find(arrived.method, url.pathname);
    const face = found && 'route' in found ? found.face : this.#persona.faces[0];
    try {
      const raw: RawRequest = { method: arrived.method, url, headers: arrived.headers, body: null, match: found?.match ?? /^/.exec('')! };
      if (found && 'answer' in found) return this.#send(wire, await found.answer(raw, arrived.text));
      if (!found) throw new Refused({ status: 404, code: 'not_found', message: `There is nothing at ${arrived.method} ${url.pathname}.` });
      this.#generate({ id: requestId(raw), arrival: this.#engine.now(), raw: { ...raw, body: parse(arrived.text) }, face, route: found.route, faults: this.#drawFaults(raw), wire });
    } catch (error) {
      const problem = error instanceof Refused ? error.problem : { status: 500, code: 'simulator_error', message: `The simulator failed: ${String(error)}` };
      this.refuse(wire, problem, face);
    }
  }

  /** Answers with a refusal in the words of the face. */
  refuse(wire: Wire, problem: Problem, face: Face = this.#persona.faces[0]): void {
    this.ledger.refuse(problem.status);
    this.#send(wire, (this.#persona.refuse ?? face.refuse)(problem));
  }

  #find(method: string, path: string): { match: RegExpExecArray; answer: (raw: RawRequest, text: string) => Reply | Promise<Reply> } | { match: RegExpExecArray; face: Face; route: GenerateRoute } | null {
    const truth = /^\/truth\/([^/]+)$/.exec(path);
    if (truth && method === 'GET') return { match: truth, answer: () => this.#truth(decodeURIComponent(truth[1]!)) };
    for (const route of this.#persona.plain) {
      const match = route.method === method ? route.path.exec(path) : null;
      if (match) {
        const answer = (raw: RawRequest, text: string): Reply | Promise<Reply> => {
          if (!route.open) this.#checkKey(raw, this.#persona.faces[0]);
          return route.answer({ ...raw, body: method === 'POST' && text !== '' ? parse(text) : null }, this);
        };
        return { match, answer };
      }
    }
    if (method !== 'POST') return null;
    for (const face of this.#persona.faces) {
      for (const route of face.routes) {
        const match = route.path.exec(path);
        if (match) return { match, face, route };
      }
    }
    return null;
  }

  #truth(id: string): Reply {
    const truth = this.#truths.find(id);
    return truth ? jsonReply(200, truth) : jsonReply(404, { error: `No request ${id} is remembered.` });
  }

  #drawFaults(raw: RawRequest): Fault[] {
    const wanted = header(raw, 'x-fault');
    try {
      return drawFaults([...(wanted === null ? [] : parseFaults(wanted)), ...this.settings.faults], this.#random);
    } catch (error) {
      throw new Refused({ status: 400, code: 'unknown_fault', message: (error as Error).message });
    }
  }

  /** The tenant of a request, or null. Throws `Refused` when a key is required and missing or wrong. */
  #checkKey(raw: RawRequest, face: Face): Tenant | null {
    const key = face.key(raw);
    const tenant = key === null ? null : (this.#tenantByKey.get(key) ?? null);
    const { apiKey } = this.settings;
    const needed = apiKey !== null || this.#tenantByKey.size > 0;
    if (tenant || (apiKey === null ? key === null || !needed : key === apiKey)) return tenant;
    throw new Refused({ status: 401, code: 'invalid_api_key', message: key === null ? 'No API key was given.' : 'The API key is not valid.' });
  }

  #generate(visit: Visit): void {
    const { raw, face, route, faults, wire } = visit;
    if (findFault(faults, 'hang')) return;
    if (this.#playedInstead(visit)) return;
    const tenant = this.#checkKey(raw, face);
    const points = this.#persona.breakpoints ? (route.points?.(raw) ?? null) : null;
    const ask = this.#withFaults(this.#checkAsk({ ...route.read(raw), ...(points ? { points } : {}) }), faults);
    const answer = composeAnswer(ask, this.settings);
    const voice = route.voice(ask, raw, this.#voiceContext(visit, ask, answer));
    const delivery = new Performance({ visit, ask, answer, voice, store: this.#truths, ledger: this.ledger, engine: this.#engine, settings: this.settings, headers: this.#persona.headers ?? {}, random: this.#random });
    const request: EngineRequest = { id: visit.id, prompt: ask.prompt, output: answer.tokens, salt: ask.salt, ...(ask.points ? { points: ask.points } : {}), ...this.#tenantFields(raw, ask, tenant) };
    const refusal = this.#engine.submit(request, (event) => delivery.event(event));
    if (refusal) throw new Refused({ status: refusal.status, code: refusal.code, message: refusal.message, retryAfter: refusal.retryAfter });
    wire.onGone(() => delivery.left());
    delivery.accepted();
  }

  #tenantFields(raw: RawRequest, ask: Ask, tenant: Tenant | null): Pick<EngineRequest, 'tenant' | 'priority'> {
    const named = header(raw, 'x-tenant') ?? ask.user;
    const known = tenant ?? this.settings.tenants.find(({ name }) => name === named) ?? null;
    const asked = Number(header(raw, 'x-priority') ?? NaN);
    return { tenant: known?.name ?? named ?? '', priority: ask.priority ?? (Number.isFinite(asked) ? asked : (known?.priority ?? 0)) };
  }

  #checkAsk(ask: Ask): Ask {
    const { servedModel, maxContext, hardware } = this.settings;
    if (ask.model !== null && ask.model !== servedModel && ask.model !== hardware.model.name) {
      throw new Refused({ status: 404, code: 'model_not_found', message: `The model \`${ask.model}\` does not exist. This server has \`${servedModel}\`.`, field: 'model' });
    }
    const wanted = ask.prompt.length + (ask.maxTokens ?? 1);
    if (wanted > maxContext) {
      const message = `This model's maximum context length is ${maxContext} tokens. However, you requested ${wanted} tokens (${ask.prompt.length} in the messages, ${ask.maxTokens ?? 1} in the completion).`;
      throw new Refused({ status: 400, code: 'context_length_exceeded', message, field: null });
    }
    return ask;
  }

  #withFaults(ask: Ask, faults: readonly Fault[]): Ask {
    if (findFault(faults, 'empty')) return { ...ask, maxTokens: 1 };
    return findFault(faults, 'json') ? { ...ask, stream: false } : ask;
  }

  #voiceContext(visit: Visit, ask: Ask, answer: Answer): Parameters<GenerateRoute['voice']>[2] {
    const flavour = { ...this.#persona.flavour, cachedTokens: this.settings.reportsCached };
    return { id: visit.id, model: ask.model ?? this.settings.servedModel, created: Math.floor(Date.now() / 1000), answer, flavour, memory: this.#memory };
  }

  /** Faults that answer in place of the model. */
  #playedInstead({ faults, raw, face, wire }: Visit): boolean {
    const status = findFault(faults, 'status');
    if (status) {
      const reply = (this.#persona.refuse ?? face.refuse)({ status: status.status, code: 'simulated', message: `Status ${status.status} (simulated).` });
      this.ledger.refuse(status.status);
      this.#send(wire, { ...reply, headers: { ...reply.headers, ...retryAfterHeaders(status.retry, Date.now()) } });
      return true;
    }
    const html = findFault(faults, 'html');
    if (html) {
      this.#send(wire, { status: html.status, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<!doctype html><html><head><title>Sign in to the gateway (simulated)</title></head><body><h1>Sign in</h1></body></html>' });
      return true;
    }
    for (const fault of faults) {
      if (fault.kind === 'refuse' && hasField(raw.body, fault.field)) {
        throw new Refused({ status: fault.status, code: 'extra_forbidden', message: `Unrecognized request argument supplied: ${fault.field}`, field: fault.field });
      }
    }
    return false;
  }

  #send(wire: Wire, reply: Reply): void {
    wire.whole(reply.status, { ...reply.headers, ...this.#persona.headers }, reply.body);
  }
}

interface Cast {
  readonly visit: Visit;
  readonly ask: Ask;
  readonly answer: Answer;
  readonly voice: Voice;
  readonly store: TruthStore;
  readonly ledger: Ledger;
  readonly engine: Driver;
  readonly settings: SimulatorSettings;
  readonly headers: Readonly<Record<string, string>>;
  readonly random: () => number;
}

/** One accepted request: follows its events and words them, streamed or whole. */
class Performance {
  readonly #visit: Visit;
  readonly #ask: Ask;
  readonly #answer: Answer;
  readonly #voice: Voice;
  readonly #truth: Truth;
  readonly #ledger: Ledger;
  readonly #engine: Driver;
  readonly #settings: SimulatorSettings;
  readonly #delivery: Delivery;
  readonly #speaker: Speaker;
  readonly #headers: Readonly<Record<string, string>>;
  #unsaid: Piece[] = [];
  #sent = 0;
  #text = '';
  #reasoning = '';
  #toolArguments = '';
  #firstAt: number | null = null;
  #lastAt: number | null = null;
  #over = false;

  constructor({ visit, ask, answer, voice, store, ledger, engine, settings, headers, random }: Cast) {
    this.#visit = visit;
    this.#ask = ask;
    this.#answer = answer;
    this.#voice = voice;
    this.#ledger = ledger;
    this.#engine = engine;
    this.#settings = settings;
    this.#speaker = new Speaker(answer);
    this.#headers = { 'x-request-id': visit.id, ...headers };
    this.#truth = {
      id: visit.id,
      api: visit.face.id,
      replica: null,
      arrival: visit.arrival,
      scheduled: null,
      promptTokens: ask.prompt.length,
      cachedTokens: null,
      outputTokens: 0,
      reasoningTokens: 0,
      frames: [],
      end: null,
      status: 200,
      outcome: visit.faults[0]?.kind ?? 'ok',
    };
    store.add(this.#truth);
    const stop = (): void => this.#stop();
    this.#delivery = new Delivery({ wire: visit.wire, time: engine, voice, faults: visit.faults, truth: this.#truth, store, headers: this.#headers, random, stop });
  }

  /** The request was let in: the head goes out, unless it waits for a seat. */
  accepted(): void {
    if (this.#ask.stream && this.#settings.headersAt === 'accept') this.#delivery.head();
  }

  /** The connection closed: a client that left early frees its seat. */
  left(): void {
    this.#delivery.dispose();
    if (this.#truth.end === null) {
      this.#truth.end = this.#engine.now();
      if (!this.#over && this.#truth.outcome === 'ok') this.#truth.outcome = 'cancelled';
    }
    this.#stop();
  }

  #stop(): void {
    this.#over = true;
    this.#engine.cancel(this.#visit.id);
  }

  event(event: EngineEvent): void {
    if (event.type === 'scheduled') this.#scheduled(event);
    else if (event.type === 'tokens') this.#tokens(event);
    else if (event.type === 'lost') {
      this.#over = true;
      this.#truth.outcome = 'lost';
      this.#delivery.cut();
    }
  }

  #scheduled({ at, cachedTokens, replica }: Extract<EngineEvent, { type: 'scheduled' }>): void {
    this.#truth.replica = replica;
    this.#truth.scheduled = this.#engine.clockTime(at);
    this.#truth.cachedTokens = cachedTokens;
    if (this.#ask.stream) this.#delivery.head();
  }

  #tokens({ at, from, count, last }: Extract<EngineEvent, { type: 'tokens' }>): void {
    this.#note(this.#engine.clockTime(at), from + count);
    const pieces = this.#speaker.say(from, count);
    this.#unsaid.push(...pieces);
    for (const piece of pieces) this.#keep(piece);
    if (this.#ask.stream && (last || from === 0 || from + count - this.#sent >= this.#settings.streamInterval)) {
      this.#delivery.say(merged(this.#unsaid), this.#tally());
      this.#unsaid = [];
      this.#sent = from + count;
    }
    if (last) this.#complete();
  }

  #keep({ kind, text }: Piece): void {
    if (kind === 'text') this.#text += text;
    else if (kind === 'reasoning') this.#reasoning += text;
    else if (kind === 'tool') this.#toolArguments += text;
  }

  #note(at: number, outputTokens: number): void {
    const made = outputTokens - this.#truth.outputTokens;
    if (this.#firstAt === null) this.#ledger.firstToken.observe((at - this.#truth.arrival) / 1000);
    else for (let i = 0; i < made; i++) this.#ledger.gap.observe((at - this.#lastAt!) / made / 1000);
    this.#firstAt ??= at;
    this.#lastAt = at;
    this.#truth.outputTokens = outputTokens;
    this.#truth.reasoningTokens = Math.min(outputTokens, this.#answer.reasoningTokens);
    this.#ledger.generatedTokens += made;
  }

  #tally(): Tally {
    const { promptTokens, cachedTokens, outputTokens, reasoningTokens } = this.#truth;
    const told = this.#answer.style === 'think' ? 0 : reasoningTokens;
    return { promptTokens, cachedTokens: cachedTokens ?? 0, outputTokens, reasoningTokens: told, times: this.#times() };
  }

  #complete(): void {
    this.#over = true;
    const end = this.#end();
    this.#count(end);
    if (this.#ask.stream) this.#delivery.close(this.#voice.close(end), end);
    else this.#sendWhole(end);
    this.#truth.end ??= this.#engine.now();
  }

  #times(): ServerTimes {
    const { arrival, scheduled } = this.#truth;
    const first = this.#firstAt ?? this.#engine.now();
    return { queue: (scheduled ?? first) - arrival, prefill: first - (scheduled ?? first), decode: (this.#lastAt ?? first) - first };
  }

  #end(): End {
    const empty = findFault(this.#visit.faults, 'empty') !== null;
    const tally = this.#tally();
    return {
      ...tally,
      outputTokens: empty ? 0 : tally.outputTokens,
      finish: empty ? 'stop' : this.#answer.finish,
      text: empty ? '' : this.#text,
      reasoning: this.#reasoning,
      toolArguments: this.#toolArguments,
    };
  }

  #count({ finish, promptTokens, cachedTokens, times }: End): void {
    const ledger = this.#ledger;
    ledger.finish(finish === 'tool' ? 'stop' : finish);
    ledger.promptTokens += promptTokens;
    ledger.cachedTokens += cachedTokens;
    ledger.queue.observe(times.queue / 1000);
    ledger.prefill.observe(times.prefill / 1000);
    ledger.decode.observe(times.decode / 1000);
    ledger.endToEnd.observe((times.queue + times.prefill + times.decode) / 1000);
  }

  #sendWhole(end: End): void {
    const { wire, faults } = this.#visit;
    const text = JSON.stringify(this.#voice.whole(end));
    const body = findFault(faults, 'malformed') ? text.slice(0, text.length / 2) : text;
    const send = (): void => {
      if (findFault(faults, 'cut')) return wire.cut();
      this.#truth.frames.push([this.#engine.now(), end.outputTokens]);
      wire.whole(200, { 'content-type': 'application/json', ...this.#headers }, body);
    };
    const delay = findFault(faults, 'slow-first')?.ms ?? findFault(faults, 'stall')?.ms ?? 0;
    if (delay === 0) send();
    else if (delay !== Infinity) this.#engine.wake(this.#engine.now() + delay, send);
  }
}

/** Neighbouring pieces of one kind as one. */
function merged(pieces: readonly Piece[]): Piece[] {
  const list: Piece[] = [];
  for (const piece of pieces) {
    const last = list.at(-1);
    if (last?.kind === piece.kind) list[list.length - 1] = { kind: piece.kind, ids: [...last.ids, ...piece.ids], text: last.text + piece.text };
    else list.push(piece);
  }
  return list;
}

function requestId(raw: RawRequest): string {
  const given = header(raw, 'x-request-id');
  return given !== null && /^[\w-]{1,100}$/.test(given) ? given : randomBytes(12).toString('hex');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refused({ status: 400, code: 'invalid_json', message: 'The body is not valid JSON.' });
  }
}
