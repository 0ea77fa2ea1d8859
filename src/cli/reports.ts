import { accessSync, closeSync, constants, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makeFolder } from '../probe/reportSink';
import { readForeign, type ForeignReport } from '../report/exchange/foreign';
import { isReportProblem, parseReport, type Report } from '../report/report';
import { UsageError } from './command';
import { readInput } from './input';

const kept = 30;
const ending = '.first-token.jsonl';

/** A report that was written to so lately (ms) may still be written to by another run. */
const fresh = 3_600_000;

/** Where reports go that were not given a place: the user's state folder. Variables that hold no absolute path count as unset (XDG Base Directory Specification); null without any. */
export function reportFolder(env: NodeJS.ProcessEnv): string | null {
  const places = [env['XDG_STATE_HOME'], process.platform === 'win32' ? env['LOCALAPPDATA'] : undefined, path.join(homeFolder(), '.local', 'state')];
  const state = places.find((place) => place !== undefined && path.isAbsolute(place));
  return state === undefined ? null : path.join(state, 'first-token', 'reports');
}

function homeFolder(): string {
  try {
    return os.homedir();
  } catch {
    return '';
  }
}

/** A fresh file in that folder; the oldest beyond thirty are deleted. Null when the folder cannot be written: the run goes on without. */
export function nextReportFile(env: NodeJS.ProcessEnv, when: Date): string | null {
  const folder = reportFolder(env);
  if (folder === null) return null;
  try {
    makeFolder(folder, 0o700);
    accessSync(folder, constants.W_OK);
    for (const name of reportsIn(folder).slice(kept - 1)) discard(path.join(folder, name), when);
  } catch {
    return null;
  }
  return path.join(folder, `${when.toISOString().replace(/[:.]/g, '-')}-${process.pid}${ending}`);
}

/** Throws a UsageError when a report written there would take the place of another file, a prompt say. Where it cannot be known, writing will tell. */
export function refuseOverwriting(file: string, flag: string): void {
  let start: string;
  try {
    if (!statSync(file).isFile()) return;
    const open = openSync(file, 'r');
    try {
      const bytes = Buffer.alloc(64);
      start = bytes.toString('utf8', 0, readSync(open, bytes, 0, bytes.length, 0));
    } finally {
      closeSync(open);
    }
  } catch {
    return;
  }
  if (start.trim() !== '' && !/^\{\s*"schema"\s*:\s*"first-token\//.test(start)) throw new UsageError(`${flag} would overwrite ${file}, which is no report. Choose another name, or delete it first.`);
}

function discard(file: string, when: Date): void {
  try {
    if (when.getTime() - statSync(file).mtimeMs > fresh) rmSync(file, { force: true });
  } catch {
    // Another run was quicker.
  }
}

/** The newest report kept there, or null. */
export function lastReportFile(env: NodeJS.ProcessEnv): string | null {
  const folder = reportFolder(env);
  if (folder === null) return null;
  const [newest] = reportsIn(folder);
  return newest === undefined ? null : path.join(folder, newest);
}

function reportsIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(ending)).sort().reverse();
  } catch {
    return [];
  }
}

/** Reads a report file. Throws a UsageError that says what is wrong with it. */
export async function readReport(file: string): Promise<Report> {
  const report = await readReportOrForeign(file);
  if (report.schema === 'first-token/foreign@1') throw new UsageError(`${file} is a result of ${report.tool}, which counts differently: first-token show prints it, but it is no report of First Token.`);
  return report;
}

/** Reads a report file or a result of another tool. Throws a UsageError that says what is wrong with it. */
export async function readReportOrForeign(file: string): Promise<Report | ForeignReport> {
  const text = (await readInput(file)).toString('utf8');
  const report = parseReport(text);
  if (isReportProblem(report)) {
    const foreign = report.problem === 'not-a-report' ? readForeign(text) : null;
    if (foreign) return foreign;
    throw new UsageError(`${file}: ${report.message}`);
  }
  return report;
}
