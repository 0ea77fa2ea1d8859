import { count, counted, numbersSentence, outOf, verdictIcon, verdictSentence, caveatSentence, waitWords } from '../src/report/format';
import { isProof } from '../src/report/proof';
import type { FromWebview } from '../src/report/messages';
import { completed, type Milliseconds } from '../src/report/sample';
import { el, icon, setText, show, type IconName } from './element';
import { menuButton } from './menu';
import type { Run } from './state';

/** What the verdict says: one sentence, a line of detail, and how it looks. */
interface Saying {
  readonly tone: 'met' | 'missed' | 'failed' | 'unclear' | 'running' | 'stopped';
  readonly icon: IconName;
  readonly sentence: string;
  readonly detail: string;
  /** Where and with what, quietly. */
  readonly context?: string;
  /** The first error as it came, when nothing else is left to show. */
  readonly raw?: string | undefined;
}

/** The verdict: what a person reads in the first two seconds, and what can be done next. */
export class Verdict {
  readonly element: HTMLElement;
  readonly #icon = el('span', {});
  readonly #sentence = el('p', { class: 'verdict-sentence', role: 'status' });
  readonly #detail = el('p', { class: 'verdict-detail' });
  readonly #context = el('p', { class: 'verdict-context' });
  readonly #raw = el('pre', { class: 'failure-detail mono', tabindex: '0', 'aria-label': 'The first error as it came' });
  readonly #stop: HTMLButtonElement;
  readonly #again: HTMLButtonElement;
  readonly #finished: HTMLElement;
  #shownIcon: IconName | null = null;
  #run: Run | null = null;
  /** When the last message about elapsed time came, on the page's own clock: the running clock only bridges the time to the next message. */
  #heard: { readonly elapsed: Milliseconds | null; readonly at: number } = { elapsed: null, at: 0 };
  #ticking = 0;

  constructor(post: (message: FromWebview) => void) {
    this.#stop = el('button', { type: 'button', class: 'button primary', on: { click: () => post({ type: 'stop' }) } }, 'Stop');
    this.#again = el('button', { type: 'button', class: 'button primary', on: { click: () => post({ type: 'runAgain' }) } }, 'Run again');
    this.#finished = el('div', { class: 'actions' },
      el('button', { type: 'button', class: 'button', on: { click: () => post({ type: 'compare' }) } }, 'Compare…'),
      menuButton('Export', [
        { label: 'JSON', run: () => post({ type: 'export', format: 'json' }) },
        { label: 'CSV', run: () => post({ type: 'export', format: 'csv' }) },
        { label: 'Markdown', run: () => post({ type: 'export', format: 'markdown' }) },
      ]),
      menuButton('More', [
        { label: 'Open report…', run: () => post({ type: 'openReport' }) },
        { label: 'Change the limits (SLO)', run: () => post({ type: 'openSettings', setting: 'firstToken.slo' }) },
        { label: 'Show log', run: () => post({ type: 'showLog' }) },
      ]));
    this.element = el('section', { class: 'verdict', 'aria-label': 'Verdict' },
      el('div', { class: 'verdict-text' }, this.#icon, el('div', {}, this.#sentence, this.#detail, this.#context, this.#raw)),
      el('div', { class: 'actions' }, this.#stop, this.#again, this.#finished));
  }

  /** Draws the verdict of a run, or how far it is. */
  draw(run: Run): void {
    this.#run = run;
    const saying = run.live ? progress(run, run.elapsed) : outcome(run);
    this.element.className = `verdict ${saying.tone}`;
    if (this.#shownIcon !== saying.icon) {
      this.#shownIcon = saying.icon;
      this.#icon.replaceChildren(icon(saying.icon));
    }
    setText(this.#sentence, saying.sentence);
    setText(this.#detail, saying.detail);
    show(this.#detail, run.live || saying.detail !== '');
    setText(this.#context, saying.context ?? '');
    show(this.#raw, saying.raw !== undefined);
    setText(this.#raw, saying.raw ?? '');
    show(this.#stop, run.live);
    show(this.#again, !run.live && run.canRunAgain);
    setText(this.#again, saying.tone === 'failed' ? 'Retry' : 'Run again');
    show(this.#finished, !run.live);
    this.#tick(run);
  }

  /** The clock runs on between two messages, so that a long wait for the first token is seen to pass. */
  #tick(run: Run): void {
    const now = Number(document.timeline.currentTime ?? 0);
    if (run.elapsed !== this.#heard.elapsed) this.#heard = { elapsed: run.elapsed, at: now };
    window.clearInterval(this.#ticking);
    if (!run.live || run.elapsed === null) return;
    this.#ticking = window.setInterval(() => {
      if (this.#run?.live !== true || this.#heard.elapsed === null) return;
      setText(this.#detail, progress(this.#run, this.#heard.elapsed + Number(document.timeline.currentTime ?? 0) - this.#heard.at).detail);
    }, 100);
  }
}

function progress(run: Run, elapsed: Milliseconds | null): Saying {
  const { name, origin } = run.report.endpoint;
  const proof = isProof(run.report.plan);
  const running = { tone: 'running', icon: 'running' } as const;
  const clock = elapsed === null ? '' : seconds(elapsed);
  const tracks = [...run.tracks.values()];
  if (tracks.length === 0) return { ...running, sentence: `Connecting to ${name}`, detail: [origin, clock].filter((text) => text !== '').join(' · ') };
  const left = run.eta === null ? '' : `about ${seconds(run.eta)} left`;
  if (run.wait !== null) return { ...running, sentence: `Waiting on purpose: ${waitWords(run.wait)}`, detail: [outOf(run.done, run.total), clock].filter((text) => text !== '').join(' · ') };
  if (!tracks.some((track) => track.firstToken !== null || track.sample !== null)) {
    const answered = tracks.filter((track) => track.headers !== null).length;
    return { ...running, sentence: 'Waiting for the first token', detail: [clock, `${outOf(answered, tracks.length)} requests have their response head`].join(' · ') };
  }
  const failed = tracks.filter((track) => track.sample !== null && !completed(track.sample)).length;
  const parts = [outOf(run.done, run.total), clock, left, failed > 0 ? `${count(failed)} failed` : '', proof || run.report.summary.ttft === null ? '' : numbersSentence(run.report)];
  return { ...running, sentence: proof ? `Proving what ${name} keeps in its prefix cache` : `Streaming from ${name}`, detail: parts.filter((text) => text !== '').join(' · ') };
}

/** A clock that runs shows tenths, always as many digits. */
function seconds(elapsed: Milliseconds): string {
  return `${(elapsed / 1000).toFixed(1)} s`;
}

function outcome(run: Run): Saying {
  const { report, stopped } = run;
  const sentence = verdictSentence(report, report.samples, 'editor');
  const proof = isProof(report.plan);
  const stop = stopped === null ? undefined : report.caveats.find((caveat) => caveat.kind === 'stopped');
  const why = stop !== undefined ? caveatSentence(stop, 'editor') : stopped === 'user' ? `Stopped by you after ${counted(run.done, 'request')}: the numbers are of what had finished.` : stopped === null ? '' : 'Stopped early: the numbers are of what had finished.';
  const failure = report.samples.find((sample) => (sample.role === 'measured' || (proof && sample.role === 'warmup')) && !completed(sample) && sample.outcome.kind !== 'cancelled');
  const answers = report.samples.some((sample) => sample.role === 'measured' && completed(sample));
  if (!answers && failure !== undefined) return { tone: 'failed', icon: 'fail', sentence, detail: why, context: context(run), raw: failure.outcome.raw ?? failure.outcome.message };
  if (stopped !== null && !answers) return { tone: 'stopped', icon: 'stopped', sentence, detail: why, context: context(run) };
  const detail = [why, report.verdict === 'missed' ? numbersSentence(report) : ''].filter((text) => text !== '').join(' ');
  const looks = { passed: ['met', 'pass'], failed: ['missed', 'fail'], queued: ['unclear', 'unclear'] } as const;
  const [tone, name] = looks[verdictIcon(report)];
  return { tone: stopped !== null && tone === 'unclear' ? 'stopped' : tone, icon: stopped !== null && tone === 'unclear' ? 'stopped' : name, sentence, detail, context: context(run) };
}

function context({ report }: Run): string {
  const { endpoint, plan } = report;
  return [endpoint.name, endpoint.model, plan.prompt.name, `${counted(plan.requests, 'request')}, ${count(plan.concurrency)} at once`, new Date(report.window.absolute).toLocaleString()].filter((text) => text !== null).join(' · ');
}
