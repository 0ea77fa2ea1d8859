import { labNumbers, labSentence } from '../src/report/labDifference';
import type { FromLab, LabLoad, ToLab } from '../src/report/messages';
import { unpackMessage } from '../src/report/packing';
import type { Report } from '../src/report/report';
import { lastStamp } from '../src/report/sample';
import { el, setText, show } from './element';
import { ChoiceForm, LoadForm } from './labForm';
import { flagsOf, lessons, usualChoice, usualLoad, type LabChoice } from './labSettings';
import type { Selection } from './navigation';
import { applyMessage, createState, type PanelState } from './state';
import { watchTheme } from './theme';
import { reachOf, Timeline } from './timeline';

interface Saved {
  readonly lesson: string;
  readonly a: LabChoice;
  readonly b: LabChoice;
  readonly load: LabLoad;
}

interface VsCodeApi {
  postMessage(message: FromLab): void;
  getState(): unknown;
  setState(state: Saved): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

interface Side {
  readonly state: PanelState;
  readonly timeline: Timeline;
}

/** Rows of each time line at a time. */
const rows = 24;

/** The lab page: two simulated servers under one load in virtual time, their time lines one above the other, and the difference in a sentence. */
function start(main: HTMLElement, api: VsCodeApi): void {
  const post = (message: FromLab): void => api.postMessage(message);
  const lesson = el('select', { class: 'select', id: 'lab-lesson', on: { change: () => choose(lesson.value, true) } }, ...lessons.map(({ id, title }) => el('option', { value: id }, title)), el('option', { value: 'own' }, 'My own settings'));
  const look = el('p', { class: 'muted lab-look' });
  const edited = (): void => {
    lesson.value = 'own';
    describe();
    remember();
  };
  const makeForm = (name: 'A' | 'B'): ChoiceForm => new ChoiceForm(name, edited, { copy: (text) => post({ type: 'copy', text }), serve: (flags) => post({ type: 'labServe', side: name, flags }) });
  const forms = { A: makeForm('A'), B: makeForm('B') };
  const load = new LoadForm(edited);
  const run = el('button', { type: 'submit', class: 'button primary' }, 'Run both');
  const status = el('p', { class: 'muted', role: 'status' });
  const sentence = el('p', { class: 'verdict-sentence', role: 'status' });
  const table = el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'A and B in numbers' });
  const sides: Readonly<Record<'A' | 'B', Side>> = { A: createSide(), B: createSide() };
  const result = el('div', {}, el('section', { 'aria-labelledby': 'lab-result' }, el('header', { class: 'section-head' }, el('h2', { id: 'lab-result' }, 'What happens')), sentence, table), sides.A.timeline.element, sides.B.timeline.element);
  const form = el('form', { class: 'lab', on: { submit: (event) => { event.preventDefault(); ask(); } } },
    el('section', { class: 'first', 'aria-labelledby': 'lab-title' },
      el('header', { class: 'section-head' }, el('h1', { id: 'lab-title' }, 'The lab')),
      el('p', {}, 'Two simulated inference servers under the same load, in virtual time: nothing is sent, nothing waits, and the numbers are exact.'),
      el('div', { class: 'lab-lesson' }, el('label', { for: 'lab-lesson' }, 'Compare'), lesson), look),
    el('div', { class: 'lab-sides' }, forms.A.element, forms.B.element), load.element, el('div', { class: 'actions' }, run, status));
  main.append(form, result);
  show(result, false);

  function settings(): Saved {
    return { lesson: lesson.value, a: forms.A.read(), b: forms.B.read(), load: load.read() };
  }

  function remember(): void {
    api.setState(settings());
  }

  function describe(): void {
    setText(look, lessons.find(({ id }) => id === lesson.value)?.look ?? 'Choose two servers and a load, then run both.');
  }

  function choose(id: string, andRun: boolean): void {
    const chosen = lessons.find((one) => one.id === id);
    describe();
    if (chosen) {
      forms.A.write({ ...usualChoice, ...chosen.a });
      forms.B.write({ ...usualChoice, ...chosen.b });
      load.write({ ...usualLoad, ...chosen.load });
    }
    remember();
    if (chosen && andRun) ask();
  }

  function ask(): void {
    for (const side of [forms.A, forms.B, load]) side.problem('');
    post({ type: 'labRun', a: flagsOf(forms.A.read()), b: flagsOf(forms.B.read()), load: load.read() });
  }

  function draw(a: Report, b: Report): void {
    setText(status, '');
    show(result, true);
    setText(sentence, labSentence(a, b));
    const numbers = labNumbers(a, b);
    table.replaceChildren(el('table', { class: 'figures lab-table' }, el('caption', { class: 'sr-only' }, 'Key numbers of both servers'),
      el('thead', {}, el('tr', {}, ...['Number', 'A', 'B'].map((text) => el('th', { scope: 'col' }, text)), el('th', { scope: 'col', class: 'words' }, 'difference'))),
      el('tbody', {}, ...numbers.map((row) => el('tr', {}, el('th', { scope: 'row' }, row.label), el('td', {}, row.aText), el('td', {}, row.bText), el('td', { class: row.difference === 'the same' ? 'words muted' : 'words' }, row.difference))))));
    const reports = { A: a, B: b };
    const reaches = (['A', 'B'] as const).map((name) => {
      const { state } = sides[name];
      applyMessage(state, { type: 'report', report: reports[name], live: false, stopped: null, canRunAgain: false, textKept: false });
      return state.view.kind === 'run' ? reachOf(state.view.run.tracks.values(), null) : { request: 0, run: 0 };
    });
    // Both begin with what their first rows show, on one axis.
    const begins = { from: 0, to: 1.03 * Math.max(...[a, b].flatMap((report) => report.samples.slice(0, rows).map(lastStamp))) };
    const reach = { request: Math.max(...reaches.map((each) => each.request)), run: Math.max(...reaches.map((each) => each.run)) };
    for (const name of ['A', 'B'] as const) {
      sides[name].timeline.setTitle(`${name}: ${flagsOf(forms[name].read()).join(' ') || 'the usual settings'}`);
      sides[name].timeline.draw(sides[name].state, reach);
      sides[name].timeline.zoom(begins);
    }
  }

  window.addEventListener('message', (event: MessageEvent<ToLab>) => {
    const message = event.data;
    switch (message.type) {
      case 'labOptions':
        for (const side of [forms.A, forms.B]) side.offer(message.models, message.gpus);
        return;
      case 'labRunning':
        return setText(status, 'Running …');
      case 'labProblem':
        setText(status, '');
        // What stands below belongs to other settings.
        show(result, false);
        return (message.side === null ? load : forms[message.side]).problem(message.message);
      case 'labServes':
        forms.A.serves('');
        forms.B.serves('');
        return forms[message.side].serves(`It runs in real time as the demo endpoint at ${message.url}.`);
      case 'compare': {
        const whole = unpackMessage(message);
        if (whole.type === 'compare') draw(whole.a, whole.b);
        return;
      }
    }
  });
  window.addEventListener('error', (event) => post({ type: 'failed', message: event.message }));
  window.addEventListener('unhandledrejection', (event) => post({ type: 'failed', message: String(event.reason) }));
  watchTheme(() => requestAnimationFrame(() => { for (const side of Object.values(sides)) side.timeline.rebuildTheme(); }));

  const saved = readSaved(api.getState());
  if (saved) {
    lesson.value = saved.lesson;
    forms.A.write(saved.a);
    forms.B.write(saved.b);
    load.write(saved.load);
    describe();
  } else choose(lessons[0]!.id, false);
  post({ type: 'labReady' });
  ask();
}

function createSide(): Side {
  const state = createState();
  const redraw = (selection: Selection): void => {
    state.selection = selection;
    timeline.draw(state, timeline.reach);
    timeline.reveal();
  };
  const nothing = (): void => { /* Made-up answers have no text and no frames. */ };
  const timeline = new Timeline({ select: redraw, open: nothing, wantAnswer: nothing, remember: nothing }, { reportId: null, zoom: null, axis: 'run', sort: 'start' }, { rows, simulated: true });
  return { state, timeline };
}

/** The settings of an earlier life of this page; anything odd is forgotten rather than trusted. */
function readSaved(value: unknown): Saved | null {
  const saved = value as Partial<Saved> | null;
  if (typeof saved !== 'object' || saved === null || typeof saved.lesson !== 'string') return null;
  const alike = (given: unknown, usual: object): boolean => typeof given === 'object' && given !== null && Object.entries(usual).every(([name, one]) => typeof (given as Record<string, unknown>)[name] === typeof one);
  return alike(saved.a, usualChoice) && alike(saved.b, usualChoice) && alike(saved.load, usualLoad) ? (saved as Saved) : null;
}

const root = document.getElementById('lab');
if (root) start(root, acquireVsCodeApi());
