import { open, mkdir, readdir, readFile, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { ForeignReport } from '../report/exchange/foreign';
import { isReportProblem, parseReport, type Report, type Verdict } from '../report/report';
import type { PanelProblem } from '../report/messages';
import { proofOf, type Proof } from '../report/proof';

/** A report in the store, as far as a list shows it. */
export interface StoredReport {
  readonly id: string;
  readonly file: string;
  readonly createdAt: string;
  readonly endpoint: string;
  readonly prompt: string;
  readonly requests: number;
  readonly verdict: Verdict | null;
  /** p50 of TTFT in ms; null when there is none. */
  readonly ttft: number | null;
  /** Kind of run: `probe`, or the experiment's name. */
  readonly scenario: string;
  /** Of a proof: served against predicted, and what was served of a later request. */
  readonly proof: { readonly state: Proof['state']; readonly served: number | null; readonly of: number | null } | null;
  /** The run did not end: the window was closed, or the machine stopped. */
  readonly partial: boolean;
}

/** A report read from a file, a result of another tool, or why there is neither. */
export type Loaded = { readonly report: Report; readonly partial: boolean } | { readonly foreign: ForeignReport; readonly file: string } | { readonly problem: Exclude<PanelProblem, { kind: 'no-run' }> };

/** Where reports are kept: one JSON-lines file a run, written while it runs. */
export interface ReportStore {
  readonly folder: string;
  /** The path for a new report. */
  fileFor(report: Pick<Report, 'id' | 'createdAt'>): Promise<string>;
  load(id: string): Promise<Loaded | null>;
  /** Newest first. */
  list(): Promise<readonly StoredReport[]>;
  remove(id: string): Promise<void>;
  /** Deletes what is over `keep` reports, and kept answer texts whose time has come. */
  tidy(keep: number): Promise<void>;
  /** To be called when a run has written its last line. */
  changed(): void;
}

const extension = '.first-token.jsonl';

/** A store in a folder; `onChange` is called when the list may have changed. */
export function createReportStore(folder: string, onChange: () => void): ReportStore {
  const seen = new Map<string, { readonly stamp: string; readonly entry: StoredReport }>();

  async function files(): Promise<string[]> {
    try {
      return (await readdir(folder)).filter((name) => name.endsWith(extension)).sort().reverse();
    } catch {
      return [];
    }
  }

  async function entryOf(name: string): Promise<StoredReport | null> {
    const file = path.join(folder, name);
    const { mtimeMs, size } = await stat(file);
    const stamp = `${mtimeMs} ${size}`;
    const known = seen.get(name);
    if (known?.stamp === stamp) return known.entry;
    const entry = summarise(name, file, await headAndTail(file, size));
    if (entry) seen.set(name, { stamp, entry });
    return entry;
  }

  const store: ReportStore = {
    folder,
    async fileFor({ id, createdAt }) {
      await mkdir(folder, { recursive: true });
      return path.join(folder, `${createdAt.replaceAll(/[:.]/g, '-')}_${id}${extension}`);
    },
    async load(id) {
      const name = (await files()).find((candidate) => idOf(candidate) === id);
      return name === undefined ? null : readReport(await readFile(path.join(folder, name), 'utf8'), path.join(folder, name));
    },
    async list() {
      const entries = await Promise.all((await files()).map((name) => entryOf(name).catch(() => null)));
      return entries.filter((entry) => entry !== null);
    },
    async remove(id) {
      for (const name of await files()) {
        if (idOf(name) === id) await rm(path.join(folder, name), { force: true });
      }
      onChange();
    },
    async tidy(keep) {
      const names = await files();
      for (const name of names.slice(keep)) await rm(path.join(folder, name), { force: true });
      for (const name of names.slice(0, keep)) await dropExpiredTexts(path.join(folder, name)).catch(() => undefined);
      if (names.length > keep) onChange();
    },
    changed: onChange,
  };
  return store;
}

/** Reads a report's text; damaged files and other versions are told apart. */
export function readReport(text: string, file: string): Loaded {
  const read = parseReport(text);
  if (!isReportProblem(read)) return { report: read, partial: read.caveats.some((caveat) => caveat.kind === 'stopped' && caveat.by === 'interrupted') };
  return { problem: read.problem === 'other-version' ? { kind: 'other-version', found: read.found ?? '?', path: file } : { kind: 'damaged', detail: read.message, path: file } };
}

function idOf(name: string): string {
  return name.slice(name.indexOf('_') + 1, -extension.length);
}

/** First and last line; a file may hold megabytes of samples between. */
async function headAndTail(file: string, size: number): Promise<{ head: string; tail: string | null }> {
  const handle = await open(file);
  try {
    const head = (await readLines(handle, 0, Math.min(size, 65_536))).split('\n', 1)[0]!;
    const from = Math.max(0, size - 262_144);
    const lines = (await readLines(handle, from, size - from)).trimEnd().split('\n');
    return { head, tail: lines.length > 1 ? lines.at(-1)! : null };
  } finally {
    await handle.close();
  }
}

async function readLines(handle: FileHandle, position: number, length: number): Promise<string> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await handle.read(buffer, 0, length, position);
  return buffer.toString('utf8', 0, bytesRead);
}

function summarise(name: string, file: string, lines: { head: string; tail: string | null }): StoredReport | null {
  const header = asReport(lines.head);
  if (!header) return null;
  const final = lines.tail === null ? null : asReport(lines.tail);
  const report = final ?? header;
  return {
    id: idOf(name),
    file,
    createdAt: header.createdAt,
    endpoint: header.endpoint.name,
    prompt: header.plan.prompt.name,
    requests: header.plan.requests,
    verdict: report.verdict,
    ttft: report.summary.ttft?.p50 ?? null,
    scenario: header.plan.scenario,
    proof: proofIn(report),
    partial: final === null,
  };
}

function proofIn(report: Report): StoredReport['proof'] {
  const proof = proofOf(report);
  const later = proof?.served.find(({ kind }) => kind === 'changed');
  return proof && { state: proof.state, served: later?.tokens ?? null, of: later?.of ?? null };
}

/** A line that is a report's head; what is inside is checked when the report is opened. */
function asReport(line: string): Report | null {
  try {
    const value = JSON.parse(line) as Partial<Report> | null;
    return value?.schema?.startsWith('first-token/report@') && value.endpoint && value.plan && value.summary ? (value as Report) : null;
  } catch {
    return null;
  }
}

/** Takes answer texts out of a report whose `texts.expires` has passed; the file is replaced whole. */
async function dropExpiredTexts(file: string): Promise<void> {
  const { size } = await stat(file);
  const { tail } = await headAndTail(file, size);
  if (tail !== null && !tail.includes('"texts"')) return;
  const lines = (await readFile(file, 'utf8')).split('\n');
  let changed = false;
  const kept = lines.map((line) => {
    if (!line.includes('"texts"')) return line;
    const value = JSON.parse(line) as { texts?: { expires: string } };
    if (value.texts === undefined || new Date(value.texts.expires) > new Date()) return line;
    changed = true;
    return JSON.stringify({ ...value, texts: undefined });
  });
  if (!changed) return;
  await writeFile(`${file}.new`, kept.join('\n'));
  await rename(`${file}.new`, file);
}
