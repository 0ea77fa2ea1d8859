/** Colours and fonts of the panel's canvases, taken from the editor's theme. */
export interface Theme {
  readonly contrast: boolean;
  readonly foreground: string;
  readonly muted: string;
  readonly background: string;
  readonly grid: string;
  readonly focus: string;
  readonly hoverRow: string;
  readonly selectedRow: string;
  readonly wait: string;
  readonly answer: string;
  readonly reasoning: string;
  readonly gap: string;
  readonly failure: string;
  readonly good: string;
  readonly family: string;
  readonly size: number;
}

/** Reads the theme in force from the CSS variables and the body's class that VS Code sets in every webview. */
export function readTheme(): Theme {
  const style = getComputedStyle(document.body);
  const color = (fallback: string, ...names: string[]): string => names.map((name) => style.getPropertyValue(`--vscode-${name}`).trim()).find((value) => value !== '') ?? fallback;
  const contrast = document.body.classList.contains('vscode-high-contrast') || document.body.classList.contains('vscode-high-contrast-light');
  const foreground = color('#888', 'foreground', 'editor-foreground');
  return {
    contrast,
    foreground,
    muted: contrast ? foreground : color('#888', 'descriptionForeground'),
    background: color('#1f1f1f', 'editor-background'),
    grid: contrast ? `color-mix(in srgb, ${foreground} 28%, transparent)` : color('rgba(128,128,128,0.18)', 'tree-inactiveIndentGuidesStroke', 'editorIndentGuide-background1'),
    focus: color('#0078d4', 'focusBorder'),
    hoverRow: contrast ? 'transparent' : color('rgba(128,128,128,0.08)', 'list-hoverBackground'),
    selectedRow: contrast ? 'transparent' : color('rgba(128,128,128,0.16)', 'list-inactiveSelectionBackground'),
    wait: contrast ? foreground : color('#888', 'charts-lines', 'descriptionForeground'),
    answer: color('#3794ff', 'charts-blue'),
    reasoning: color('#b180d7', 'charts-purple'),
    // In the contrast themes orange is a dark brown or the border's blue; yellow carries there.
    gap: contrast ? color('#d18616', 'charts-yellow') : color('#d18616', 'charts-orange', 'editorWarning-foreground'),
    failure: color('#f14c4c', 'testing-iconFailed', 'errorForeground'),
    good: color('#89d185', 'charts-green'),
    family: color('sans-serif', 'font-family'),
    size: Number.parseFloat(color('13', 'font-size')),
  };
}

/** Calls `changed` whenever the editor changes its theme. */
export function watchTheme(changed: () => void): void {
  new MutationObserver(changed).observe(document.body, { attributes: true, attributeFilter: ['class', 'data-vscode-theme-name', 'data-vscode-theme-id'] });
  new MutationObserver(changed).observe(document.documentElement, { attributes: true, attributeFilter: ['style'] });
}
