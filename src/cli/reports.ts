import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readForeign, type ForeignReport } from '../report/exchange/foreign';
import { isReportProblem, parseReport, type Report } from '../report/report';
import { UsageError } from './command';

const kept = 30;
const ending = '.first-token.jsonl';

/** Where reports go that were not given a place: the user's state folder. */
export function reportFolder(env: NodeJS.ProcessEnv): string {
  const state = env['XDG_STATE_HOME'] ?? (process.platform === 'win32' ? env['LOCALAPPDATA'] : undefined) ?? path.join(os.homedir(), '.local', 'state');
  return path.join(state, 'first-token', 'reports');
}

/** A fresh file in that folder; the oldest beyond thirty are deleted. Null when the folder cannot be written: the run goes on without. */
export function nextReportFile(env: NodeJS.ProcessEnv, when: Date): string | null {
  const folder = reportFolder(env);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of reportsIn(folder).slice(kept - 1)) rmSync(path.join(folder, name), { force: true });
  } catch {
    return null;
  }
  return path.join(folder, `${when.toISOString().replace(/[:.]/g, '-')}-${process.pid}${ending}`);
}

/** The newest report kept there, or null. */
export function lastReportFile(env: NodeJS.ProcessEnv): string | null {
  const folder = reportFolder(env);
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
export function readReport(file: string): Report {
  const report = readReportOrForeign(file);
  if (report.schema === 'first-token/foreign@1') throw new UsageError(`${file} is a result of ${report.tool}, which counts differently: first-token show prints it, but it is no report of First Token.`);
  return report;
}

/** Reads a report file or a result of another tool. Throws a UsageError that says what is wrong with it. */
export function readReportOrForeign(file: string): Report | ForeignReport {
  let text: string;
  try {
    if (statSync(file).size > 1 << 30) throw new UsageError(`${file} is larger than 1 GB: that is not a report of this tool.`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}.`);
  }
  const report = parseReport(text);
  if (isReportProblem(report)) {
    const foreign = report.problem === 'not-a-report' ? readForeign(text) : null;
    if (foreign) return foreign;
    throw new UsageError(`${file}: ${report.message}`);
  }
  return report;
}
