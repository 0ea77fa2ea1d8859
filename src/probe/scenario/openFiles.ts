/** How many files and sockets this process may open: asked before a load is started, because running out looks like a failing server. */
import { readdirSync, readFileSync } from 'node:fs';
import { PlanError } from '../plan';

/** Beside the sockets of the load: standard streams, worker threads, the report file. */
const spare = 64;

/** The soft limit of open files and how many are open now; null where the system does not tell. */
export function openFiles(): { readonly limit: number; readonly open: number } | null {
  try {
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    if (soft !== undefined) return soft === 'unlimited' ? null : { limit: Number(soft), open: readdirSync('/proc/self/fd').length };
  } catch {
    // Not Linux: the diagnostic report knows.
  }
  const report = process.report.getReport() as { readonly userLimits?: { readonly open_files?: { readonly soft?: number | string } } };
  const soft = Number(report.userLimits?.open_files?.soft);
  return Number.isFinite(soft) ? { limit: soft, open: spare } : null;
}

/** Throws a PlanError when `sockets` more cannot be open at once. */
export function checkOpenFiles(sockets: number, files = openFiles()): void {
  if (files === null || files.open + sockets + spare <= files.limit) return;
  const possible = Math.max(0, files.limit - files.open - spare);
  throw new PlanError(`${sockets} connections at once need ${files.open + sockets + spare} open files, and this process may have ${files.limit}: use at most ${possible} at once (--most), or raise the limit (ulimit -n ${2 ** Math.ceil(Math.log2(files.open + sockets + spare))}).`, 'firstToken.probe');
}
