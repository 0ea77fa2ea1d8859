import * as vscode from 'vscode';
import { answered, type Dialogs } from './dialogs';
import type { Evidence } from './evidence';
import { Failure } from './failure';

/** Saves one request's tape, without secrets, where the user says. */
export async function saveTape(evidence: Evidence | null, sampleId: string, dialogs: Dialogs): Promise<void> {
  if (!evidence) throw new Failure(vscode.l10n.t('The tape of this request is no longer there: tapes last until the window closes. Run the probe again.'));
  const text = textOf(evidence);
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const target = await answered(
    dialogs.save({ title: vscode.l10n.t('Save Tape'), filters: { [vscode.l10n.t('Tape')]: ['json'] }, ...(folder ? { defaultUri: vscode.Uri.joinPath(folder, `request-${sampleId}.tape.json`) } : {}) }),
  );
  await vscode.workspace.fs.writeFile(target, new TextEncoder().encode(text));
  void dialogs.choose('info', vscode.l10n.t('The tape is in {0}. Keys are taken out; the answer is in it.', vscode.workspace.asRelativePath(target)));
}

function textOf(evidence: Evidence): string {
  try {
    return evidence.tapeFile();
  } catch (error) {
    throw new Failure(vscode.l10n.t('The tape is not saved. {0}', (error as Error).message));
  }
}
