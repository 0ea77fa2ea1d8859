import type { FromWebview, PanelProblem } from '../src/report/messages';
import { el } from './element';

type Post = (message: FromWebview) => void;

/** Draws why there is no report, with one sentence and one thing to do. */
export function drawProblem(root: HTMLElement, problem: PanelProblem, post: Post): void {
  const words = wordsOf(problem);
  const button = (label: string, message: FromWebview, primary: boolean): HTMLElement => el('button', { type: 'button', class: primary ? 'button primary' : 'button', on: { click: () => post(message) } }, label);
  root.replaceChildren(el('div', { class: 'state', role: 'status' },
    el('h1', {}, words.title), el('p', {}, words.sentence), words.path === null ? null : el('p', { class: 'mono muted' }, words.path),
    el('div', { class: 'actions' }, ...words.actions.map(([label, message], i) => button(label, message, i === 0)))));
}

interface ProblemWords {
  readonly title: string;
  readonly sentence: string;
  readonly path: string | null;
  readonly actions: readonly (readonly [label: string, message: FromWebview])[];
}

function wordsOf(problem: PanelProblem): ProblemWords {
  switch (problem.kind) {
    case 'no-run':
      return { title: 'No run yet', sentence: 'A spot check sends eight short requests to your endpoint and shows how the answers arrive.', path: null, actions: [['Spot-check endpoint', { type: 'spotCheck' }]] };
    case 'other-version':
      return {
        title: 'A report of another version', path: problem.path, actions: [['Open another report…', { type: 'openReport' }]],
        sentence: `This report was written as ${problem.found}, which this version of First Token does not read. Update First Token, or open the report with the version that wrote it.`,
      };
    case 'damaged':
      return { title: 'The report cannot be read', sentence: `${problem.detail} The file was left as it is.`, path: problem.path, actions: [['Open another report…', { type: 'openReport' }], ['Show log', { type: 'showLog' }]] };
  }
}
