import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';

/** What a page of ours consists of: its title, the id of the element it fills, and its files in `dist`. */
export interface PageParts {
  readonly title: string;
  readonly root: string;
  readonly script: string;
  readonly styles: readonly string[];
}

/** The HTML of a webview: nothing but our own script and styles, and no network; all data comes by message. */
export function webviewPage(webview: vscode.Webview, extensionUri: vscode.Uri, { title, root, script, styles }: PageParts): string {
  const nonce = randomBytes(16).toString('base64');
  const dist = (file: string): string => webview.asWebviewUri(vscode.Uri.joinPath(extensionUri, 'dist', file)).toString();
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${webview.cspSource}; font-src ${webview.cspSource}; img-src ${webview.cspSource};`;
  return `<!DOCTYPE html>
<html lang="${vscode.env.language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
${styles.map((file) => `<link rel="stylesheet" href="${dist(file)}">`).join('\n')}
<title>${title}</title>
</head>
<body><main id="${root}"></main><script nonce="${nonce}" src="${dist(script)}"></script></body>
</html>`;
}
