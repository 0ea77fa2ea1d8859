import type * as vscode from 'vscode';

/** API keys by origin (`https://host:port`, `unix:/path`), so that a changed URL never gets another endpoint's key. The only user of SecretStorage. */
export interface Secrets {
  get(origin: string): Promise<string | null>;
  set(origin: string, key: string): Promise<void>;
  /** False when there was none. */
  remove(origin: string): Promise<boolean>;
  readonly onDidChange: vscode.Event<vscode.SecretStorageChangeEvent>;
}

/** Keys in the editor's secret storage. `seen` hears every key that is read or written, to keep it out of the log. */
export function createSecrets(storage: vscode.SecretStorage, seen: (key: string) => void): Secrets {
  const name = (origin: string) => `firstToken.key:${origin}`;
  return {
    async get(origin) {
      const key = (await storage.get(name(origin))) ?? null;
      if (key) seen(key);
      return key;
    },
    async set(origin, key) {
      seen(key);
      await storage.store(name(origin), key);
    },
    async remove(origin) {
      const before = await storage.get(name(origin));
      if (before === undefined) return false;
      await storage.delete(name(origin));
      return true;
    },
    onDidChange: storage.onDidChange,
  };
}
