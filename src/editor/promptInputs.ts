import * as vscode from 'vscode';
import type { Dialogs } from './dialogs';
import { Cancelled } from './failure';

/** Values for the variables that a prompt file leaves open; asked once a file and kept in the workspace. */
export interface PromptInputs {
  /** The values to render with: those remembered, or asked now. Empty when the user wants the file sent as it stands. Throws Cancelled. */
  valuesFor(document: vscode.TextDocument, open: readonly string[]): Promise<Readonly<Record<string, string>>>;
  /** Forgets what was answered for a file, so that it is asked again. */
  forget(document: vscode.TextDocument): Promise<void>;
}

const stateKey = 'firstToken.promptInputs';
/** Null = this file is sent as it stands. */
type Remembered = Readonly<Record<string, Readonly<Record<string, string>> | null>>;

/** Inputs in the workspace's memory. They are prompt text: never in settings, logs or reports. */
export function createPromptInputs(memory: vscode.Memento, dialogs: Dialogs): PromptInputs {
  const all = () => memory.get<Remembered>(stateKey, {});
  const keep = (file: string, values: Remembered[string] | undefined) => memory.update(stateKey, { ...all(), [file]: values });

  async function ask(names: readonly string[], before: Readonly<Record<string, string>>): Promise<Record<string, string> | null> {
    const fill = { label: vscode.l10n.t('$(edit) Fill them in'), detail: names.join(', ') };
    const asIs = { label: vscode.l10n.t('$(play) Send it as it stands'), detail: vscode.l10n.t('The report says which variables were left as written') };
    const choice = await dialogs.pick([fill, asIs], { title: vscode.l10n.t('Variables without a value: {0}', names.length), placeHolder: vscode.l10n.t('Asked once for this file; Forget Sample Inputs asks again'), ignoreFocusOut: true });
    if (!choice) throw new Cancelled();
    if (choice === asIs) return null;
    const values: Record<string, string> = { ...before };
    for (const [index, name] of names.entries()) {
      const value = await dialogs.input({ title: vscode.l10n.t('Sample Inputs'), step: index + 1, totalSteps: names.length, prompt: vscode.l10n.t('Value of {0} for probing this file', name), value: before[name] ?? '' });
      if (value === undefined) throw new Cancelled();
      values[name] = value;
    }
    return values;
  }

  return {
    async valuesFor(document, open) {
      const file = document.uri.toString();
      const known = all()[file];
      if (known === null || open.length === 0) return known ?? {};
      const missing = open.filter((name) => !Object.hasOwn(known ?? {}, name));
      if (missing.length === 0) return known!;
      const values = await ask(missing, known ?? {});
      await keep(file, values);
      return values ?? {};
    },
    forget: async (document) => {
      await keep(document.uri.toString(), undefined);
    },
  };
}
