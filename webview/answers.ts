import { ms, outcomeSentence } from '../src/report/format';
import type { FrameView } from '../src/report/messages';
import type { DeltaKind } from '../src/report/sample';
import { el, setText, show } from './element';
import type { Selection } from './navigation';
import type { PanelState } from './state';
import { nameOf } from './timelineTable';
import { kindNames, type Track } from './track';

/** What the panes ask of the panel around them. */
export interface AnswerHost {
  readonly select: (selection: Selection) => void;
  readonly copy: (text: string) => void;
  readonly saveTape: (sampleId: string) => void;
  readonly openSetting: (setting: string) => void;
  /** Escape: back to the time line. */
  readonly back: () => void;
}

/** A stretch of deltas of one kind, shown as one element with one text node: no element exists per token. */
interface Stretch {
  readonly kind: DeltaKind;
  readonly node: Text;
  /** First delta, and where each of its deltas ends in the text node. */
  readonly first: number;
  readonly ends: number[];
}

const highlightName = 'current-token';

/** The answer and the raw frames of the chosen request, side by side. */
export class Answers {
  readonly element: HTMLElement;
  readonly #host: AnswerHost;
  readonly #title = el('h2', { id: 'answer-title' });
  readonly #text = el('div', { class: 'pane-body answer-text', tabindex: '0', role: 'region', 'aria-label': 'Answer text' });
  readonly #frames = el('div', { class: 'pane-body', tabindex: '0', role: 'region', 'aria-label': 'Raw frames' });
  readonly #framesTitle = el('h3', {}, 'Frames');
  readonly #copy: HTMLButtonElement;
  readonly #tape: HTMLButtonElement;
  #stretches: Stretch[] = [];
  #shown: { readonly sampleId: string; readonly count: number; readonly source: unknown } = { sampleId: '', count: -1, source: null };
  #frameShown: FrameView | null | undefined;
  #state: PanelState | null = null;
  #track: Track | null = null;

  constructor(host: AnswerHost) {
    this.#host = host;
    this.#copy = el('button', { type: 'button', class: 'tool', on: { click: () => this.#host.copy(this.#stretches.map((stretch) => stretch.node.data).join('')) } }, 'Copy text');
    this.#tape = el('button', { type: 'button', class: 'tool', title: 'Save what this request left on the wire, to look at it again or to report it', on: { click: () => { if (this.#track) this.#host.saveTape(this.#track.id); } } }, 'Save tape…');
    this.element = el('section', { 'aria-labelledby': 'answer-title' },
      el('header', { class: 'section-head' }, this.#title, el('div', { class: 'tools' }, this.#copy, this.#tape)),
      el('div', { class: 'pair' }, el('div', { class: 'pane' }, el('h3', {}, 'Answer'), this.#text), el('div', { class: 'pane' }, this.#framesTitle, this.#frames)));
    this.#text.addEventListener('click', (event) => this.#clickText(event));
    this.element.addEventListener('keydown', (event) => { if (event.key === 'Escape') this.#host.back(); });
    this.#text.addEventListener('keydown', (event) => this.#key(event));
  }

  /** Moves the keyboard to the frames. */
  focusFrames(): void {
    this.#frames.focus();
  }

  /** Draws the chosen request. */
  draw(state: PanelState): void {
    this.#state = state;
    const run = state.view.kind === 'run' ? state.view.run : null;
    this.#track = (state.selection && run?.tracks.get(state.selection.sampleId)) ?? null;
    show(this.element, this.#track !== null);
    if (this.#track === null || run === null) return;
    setText(this.#title, `Answer and frames of request ${nameOf(this.#track)}`);
    this.#tape.disabled = this.#track.sample === null || !run.textKept;
    this.#drawText(this.#track, state);
    this.#drawFrames(state.frame?.sampleId === this.#track.id ? state.frame : null, state);
    this.#highlight(state.selection);
  }

  #drawText(track: Track, state: PanelState): void {
    const answer = state.answers.get(track.id);
    const pieces = track.sample !== null && track.count === 0 ? [] : answer?.pieces ?? (track.pieces === null ? null : track.pieces.map((text, i) => ({ kind: kindNames[track.kinds[i] ?? 0] ?? 'text', text })));
    const source = answer ?? (pieces ? 'live' : track.sample ? 'asked' : 'none');
    if (this.#shown.sampleId === track.id && this.#shown.count === (pieces?.length ?? -1) && this.#shown.source === source) return;
    const grows = this.#shown.sampleId === track.id && this.#shown.source === source && pieces !== null && this.#shown.count >= 0;
    const from = grows ? this.#shown.count : 0;
    this.#shown = { sampleId: track.id, count: pieces?.length ?? -1, source };
    if (!grows) {
      this.#stretches = [];
      this.#text.replaceChildren();
    }
    this.#copy.disabled = pieces === null || pieces.length === 0;
    if (pieces === null) this.#text.append(answer ? this.#notKept() : el('p', { class: 'muted' }, 'Loading…'));
    else if (pieces.length === 0) this.#text.append(el('p', { class: 'muted' }, track.sample ? `No text came. ${outcomeSentence(track.sample.outcome, 'editor')}` : 'Nothing has arrived yet.'));
    else this.#append(pieces, from);
  }

  #append(pieces: readonly { readonly kind: DeltaKind; readonly text: string }[], from: number): void {
    if (from === 0) this.#text.replaceChildren();
    const following = this.#text.scrollTop + this.#text.clientHeight >= this.#text.scrollHeight - 4;
    let stretch = this.#stretches.at(-1);
    let buffer = '';
    for (const { kind, text } of pieces.slice(from)) {
      // A bare token has no text and so needs no stretch of its own.
      if (stretch === undefined || (stretch.kind !== kind && kind !== 'token')) {
        stretch?.node.appendData(buffer);
        buffer = '';
        const first: number = stretch ? stretch.first + stretch.ends.length : 0;
        stretch = { kind, node: document.createTextNode(''), first, ends: [] };
        this.#stretches.push(stretch);
        this.#text.append(el('span', { class: `piece ${kind}` }, stretch.node));
      }
      stretch.ends.push((stretch.ends.at(-1) ?? 0) + text.length);
      buffer += text;
    }
    stretch?.node.appendData(buffer);
    if (following && from > 0) this.#text.scrollTop = this.#text.scrollHeight;
  }

  #notKept(): HTMLElement {
    return el('p', { class: 'muted' }, 'The text of this run was not kept: only its times were. To keep it next time, turn on ',
      el('button', { type: 'button', class: 'link', on: { click: () => this.#host.openSetting('firstToken.reports') } }, 'firstToken.reports'), '.keepText.');
  }

  #drawFrames(view: FrameView | null, state: PanelState): void {
    const index = state.selection?.deltaIndex ?? null;
    const shown = index === null ? null : view;
    if (this.#frameShown === shown && shown !== null) return;
    this.#frameShown = shown;
    setText(this.#framesTitle, index === null ? 'Frames' : `Frames around delta ${index + 1}`);
    const raw = this.#track?.sample?.outcome.raw;
    if (shown === null && index === null && raw !== undefined) {
      setText(this.#framesTitle, 'The error as it came');
      this.#frames.replaceChildren(el('pre', { class: 'mono' }, raw));
      return;
    }
    if (shown === null) {
      this.#frames.replaceChildren(el('p', { class: 'muted' }, index === null ? 'Choose a tick, a gap or a word to see the frames around it.' : 'Loading…'));
      return;
    }
    if (shown.frames === null) {
      this.#frames.replaceChildren(el('p', { class: 'muted' }, 'The frames of this run were not kept. They exist until the editor is reloaded; Save tape keeps one request for good.'));
      return;
    }
    this.#frames.replaceChildren(el('ol', { class: 'frames' }, ...shown.frames.map((frame) => this.#frame(frame, shown.sampleId))));
    const current = this.#frames.querySelector<HTMLElement>('.current');
    if (current) this.#frames.scrollTop += current.getBoundingClientRect().top - this.#frames.getBoundingClientRect().top - this.#frames.clientHeight / 3;
  }

  #frame(frame: NonNullable<FrameView['frames']>[number], sampleId: string): HTMLElement {
    const choose = typeof frame.delta === 'number' ? frame.delta : null;
    const name = `frame ${frame.index + 1}`;
    const head = el('div', { class: 'frame-head' },
      choose === null ? el('span', {}, name) : el('button', { type: 'button', class: 'link', on: { click: () => this.#host.select({ sampleId, deltaIndex: choose }) } }, name),
      el('span', {}, ms(frame.t)), el('span', {}, frame.gap === null ? 'first' : `gap ${ms(frame.gap)}`), el('span', {}, `read ${frame.read + 1}`));
    return el('li', { class: frame.current ? 'frame current' : 'frame', 'aria-current': frame.current ? 'true' : null }, head, el('pre', {}, frame.raw));
  }

  /** Marks the chosen token with a CSS highlight: the text stays one node. */
  #highlight(selection: Selection | null): void {
    CSS.highlights.delete(highlightName);
    const index = selection?.deltaIndex ?? null;
    if (index === null) return;
    const stretch = this.#stretches.findLast((candidate) => candidate.first <= index);
    if (!stretch) return;
    const range = new Range();
    range.setStart(stretch.node, Math.min(stretch.ends[index - stretch.first - 1] ?? 0, stretch.node.length));
    range.setEnd(stretch.node, Math.min(stretch.ends[index - stretch.first] ?? stretch.node.length, stretch.node.length));
    CSS.highlights.set(highlightName, new Highlight(range));
    const box = range.getBoundingClientRect();
    const pane = this.#text.getBoundingClientRect();
    if (box.top < pane.top || box.bottom > pane.bottom) this.#text.scrollTop += box.top - pane.top - pane.height / 3;
  }

  #clickText(event: MouseEvent): void {
    if (this.#track === null || window.getSelection()?.isCollapsed === false) return;
    const caret = document.caretPositionFromPoint(event.clientX, event.clientY);
    const stretch = this.#stretches.find((candidate) => candidate.node === caret?.offsetNode);
    if (!stretch || !caret) return;
    const within = stretch.ends.findIndex((end) => caret.offset < end);
    this.#host.select({ sampleId: this.#track.id, deltaIndex: stretch.first + (within < 0 ? stretch.ends.length - 1 : within) });
  }

  #key(event: KeyboardEvent): void {
    if (this.#track === null || this.#track.count === 0 || event.ctrlKey || event.shiftKey || event.altKey || event.metaKey) return;
    const index = this.#state?.selection?.deltaIndex ?? -1;
    const to = event.key === 'ArrowRight' ? index + 1 : event.key === 'ArrowLeft' ? index - 1 : null;
    if (to === null) return;
    event.preventDefault();
    this.#host.select({ sampleId: this.#track.id, deltaIndex: Math.min(Math.max(to, 0), this.#track.count - 1) });
  }
}
