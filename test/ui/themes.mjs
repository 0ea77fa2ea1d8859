// The variables VS Code sets in a webview, for its four standard themes, as far as the panel reads them.
const shared = {
  'font-family': '"Segoe WPC", "Segoe UI", system-ui, "DejaVu Sans", sans-serif', 'font-size': '13px', 'font-weight': 'normal',
  'editor-font-family': '"DejaVu Sans Mono", monospace', 'editor-font-size': '12px',
};

const dark = {
  'foreground': '#cccccc', 'descriptionForeground': '#9d9d9d', 'disabledForeground': 'rgba(204, 204, 204, 0.5)', 'errorForeground': '#f85149', 'editor-background': '#1f1f1f', 'editor-foreground': '#cccccc',
  'focusBorder': '#0078d4', 'panel-border': '#2b2b2b', 'widget-border': '#313131', 'widget-shadow': 'rgba(0, 0, 0, 0.36)',
  'button-background': '#0078d4', 'button-foreground': '#ffffff', 'button-hoverBackground': '#026ec1', 'button-border': 'rgba(255, 255, 255, 0.07)',
  'button-secondaryBackground': '#313131', 'button-secondaryForeground': '#cccccc', 'button-secondaryHoverBackground': '#3c3c3c',
  'dropdown-background': '#313131', 'dropdown-foreground': '#cccccc', 'dropdown-border': '#3c3c3c', 'toolbar-hoverBackground': 'rgba(90, 93, 94, 0.31)',
  'inputOption-activeBackground': 'rgba(36, 137, 219, 0.51)', 'inputOption-activeBorder': '#2488db', 'inputOption-activeForeground': '#ffffff',
  'textLink-foreground': '#4daafc', 'textLink-activeForeground': '#4daafc', 'textCodeBlock-background': '#2b2b2b',
  'menu-background': '#1f1f1f', 'menu-foreground': '#cccccc', 'menu-border': '#454545', 'menu-selectionBackground': '#0078d4', 'menu-selectionForeground': '#ffffff',
  'testing-iconPassed': '#73c991', 'testing-iconFailed': '#f14c4c', 'testing-iconQueued': '#cca700', 'progressBar-background': '#0078d4',
  'charts-foreground': '#cccccc', 'charts-lines': 'rgba(204, 204, 204, 0.5)', 'charts-red': '#f14c4c', 'charts-blue': '#59a4f9', 'charts-yellow': '#cca700', 'charts-orange': '#d18616', 'charts-green': '#89d185', 'charts-purple': '#b180d7',
  'list-hoverBackground': '#2a2d2e', 'list-inactiveSelectionBackground': '#37373d', 'list-activeSelectionBackground': '#04395e', 'tree-inactiveIndentGuidesStroke': 'rgba(88, 88, 88, 0.4)',
  'editorWarning-foreground': '#cca700', 'editorHoverWidget-background': '#202020', 'editorHoverWidget-foreground': '#cccccc', 'editorHoverWidget-border': '#454545', 'editorWidget-background': '#202020',
  'editor-findMatchBackground': '#9e6a03', 'editor-findMatchHighlightBackground': 'rgba(234, 92, 0, 0.33)', 'editor-hoverHighlightBackground': 'rgba(38, 79, 120, 0.25)', 'editor-selectionBackground': '#264f78',
};

const light = {
  ...dark,
  'foreground': '#3b3b3b', 'descriptionForeground': '#3b3b3bd9', 'disabledForeground': 'rgba(97, 97, 97, 0.5)', 'errorForeground': '#f85149', 'editor-background': '#ffffff', 'editor-foreground': '#3b3b3b',
  'focusBorder': '#005fb8', 'panel-border': '#e5e5e5', 'widget-border': '#e5e5e5', 'widget-shadow': 'rgba(0, 0, 0, 0.16)',
  'button-background': '#005fb8', 'button-foreground': '#ffffff', 'button-hoverBackground': '#0258a8', 'button-border': 'rgba(0, 0, 0, 0.1)',
  'button-secondaryBackground': '#e5e5e5', 'button-secondaryForeground': '#3b3b3b', 'button-secondaryHoverBackground': '#cccccc',
  'dropdown-background': '#ffffff', 'dropdown-foreground': '#3b3b3b', 'dropdown-border': '#cecece', 'toolbar-hoverBackground': 'rgba(184, 184, 184, 0.31)',
  'inputOption-activeBackground': '#bed6ed', 'inputOption-activeBorder': '#005fb8', 'inputOption-activeForeground': '#000000',
  'textLink-foreground': '#005fb8', 'textLink-activeForeground': '#005fb8', 'textCodeBlock-background': '#f8f8f8',
  'menu-background': '#ffffff', 'menu-foreground': '#3b3b3b', 'menu-border': '#cecece', 'menu-selectionBackground': '#005fb8', 'menu-selectionForeground': '#ffffff',
  'testing-iconPassed': '#007100', 'testing-iconFailed': '#f14c4c', 'testing-iconQueued': '#cca700', 'progressBar-background': '#005fb8',
  'charts-foreground': '#3b3b3b', 'charts-lines': 'rgba(59, 59, 59, 0.5)', 'charts-red': '#e51400', 'charts-blue': '#0063d3', 'charts-yellow': '#bf8803', 'charts-orange': '#d18616', 'charts-green': '#388a34', 'charts-purple': '#652d90',
  'list-hoverBackground': '#f2f2f2', 'list-inactiveSelectionBackground': '#e4e6f1', 'list-activeSelectionBackground': '#e8e8e8', 'tree-inactiveIndentGuidesStroke': 'rgba(169, 169, 169, 0.4)',
  'editorWarning-foreground': '#bf8803', 'editorHoverWidget-background': '#f8f8f8', 'editorHoverWidget-foreground': '#3b3b3b', 'editorHoverWidget-border': '#c8c8c8', 'editorWidget-background': '#f8f8f8',
  'editor-findMatchBackground': '#a8ac94', 'editor-findMatchHighlightBackground': 'rgba(234, 92, 0, 0.33)', 'editor-hoverHighlightBackground': 'rgba(173, 214, 255, 0.15)', 'editor-selectionBackground': '#add6ff',
};

const contrast = {
  'foreground': '#ffffff', 'descriptionForeground': 'rgba(255, 255, 255, 0.7)', 'disabledForeground': '#a5a5a5', 'errorForeground': '#f48771', 'editor-background': '#000000', 'editor-foreground': '#ffffff',
  'focusBorder': '#f38518', 'contrastBorder': '#6fc3df', 'contrastActiveBorder': '#f38518', 'panel-border': '#6fc3df', 'widget-border': '#6fc3df',
  'button-background': 'transparent', 'button-foreground': '#ffffff', 'button-border': '#6fc3df', 'button-secondaryForeground': '#ffffff',
  'dropdown-background': '#000000', 'dropdown-foreground': '#ffffff', 'dropdown-border': '#6fc3df',
  'inputOption-activeBackground': 'rgba(0, 0, 0, 0)', 'inputOption-activeBorder': '#f38518', 'inputOption-activeForeground': '#ffffff',
  'textLink-foreground': '#21a6ff', 'textLink-activeForeground': '#21a6ff', 'menu-background': '#000000', 'menu-foreground': '#ffffff', 'menu-border': '#6fc3df', 'menu-selectionBorder': '#f38518',
  'testing-iconPassed': '#73c991', 'testing-iconFailed': '#f48771', 'testing-iconQueued': '#cca700', 'progressBar-background': '#6fc3df',
  'charts-foreground': '#ffffff', 'charts-lines': 'rgba(255, 255, 255, 0.5)', 'charts-red': '#f48771', 'charts-blue': '#59a4f9', 'charts-yellow': '#ffd370', 'charts-orange': '#ab5a00', 'charts-green': '#89d185', 'charts-purple': '#b180d7',
  'editorWarning-foreground': '#ffd370', 'editorHoverWidget-background': '#0c141f', 'editorHoverWidget-foreground': '#ffffff', 'editorHoverWidget-border': '#6fc3df', 'editorWidget-background': '#0c141f',
  'list-hoverBackground': 'rgba(255, 255, 255, 0.1)', 'tree-inactiveIndentGuidesStroke': 'rgba(169, 169, 169, 0.4)', 'editor-findMatchHighlightBorder': '#f38518', 'editor-selectionBackground': '#ffffff', 'editor-selectionForeground': '#000000',
};

const contrastLight = {
  'foreground': '#292929', 'descriptionForeground': 'rgba(41, 41, 41, 0.7)', 'disabledForeground': '#7f7f7f', 'errorForeground': '#b5200d', 'editor-background': '#ffffff', 'editor-foreground': '#292929',
  'focusBorder': '#006bbd', 'contrastBorder': '#0f4a85', 'contrastActiveBorder': '#006bbd', 'panel-border': '#0f4a85', 'widget-border': '#0f4a85',
  'button-background': '#0f4a85', 'button-foreground': '#ffffff', 'button-border': '#0f4a85', 'button-hoverBackground': '#0f4a85', 'button-secondaryBackground': '#ffffff', 'button-secondaryForeground': '#292929',
  'dropdown-background': '#ffffff', 'dropdown-foreground': '#292929', 'dropdown-border': '#0f4a85',
  'inputOption-activeBackground': 'rgba(0, 0, 0, 0)', 'inputOption-activeBorder': '#006bbd', 'inputOption-activeForeground': '#292929',
  'textLink-foreground': '#0f4a85', 'textLink-activeForeground': '#0f4a85', 'textCodeBlock-background': '#f2f2f2', 'menu-background': '#ffffff', 'menu-foreground': '#292929', 'menu-border': '#0f4a85', 'menu-selectionBorder': '#006bbd',
  'testing-iconPassed': '#007100', 'testing-iconFailed': '#b5200d', 'testing-iconQueued': '#cca700', 'progressBar-background': '#0f4a85',
  'charts-foreground': '#292929', 'charts-lines': 'rgba(41, 41, 41, 0.5)', 'charts-red': '#b5200d', 'charts-blue': '#0063d3', 'charts-yellow': '#895503', 'charts-orange': '#0f4a85', 'charts-green': '#374e06', 'charts-purple': '#652d90',
  'editorWarning-foreground': '#895503', 'editorHoverWidget-background': '#ffffff', 'editorHoverWidget-foreground': '#292929', 'editorHoverWidget-border': '#0f4a85', 'editorWidget-background': '#ffffff',
  'list-hoverBackground': 'rgba(15, 74, 133, 0.1)', 'tree-inactiveIndentGuidesStroke': 'rgba(169, 169, 169, 0.4)', 'editor-findMatchHighlightBorder': '#0f4a85', 'editor-selectionBackground': '#0f4a85', 'editor-selectionForeground': '#ffffff',
};

/** Body class and CSS variables of each theme. */
export const themes = {
  dark: { bodyClass: 'vscode-dark', variables: { ...shared, ...dark } },
  light: { bodyClass: 'vscode-light', variables: { ...shared, ...light } },
  contrast: { bodyClass: 'vscode-high-contrast', variables: { ...shared, ...contrast } },
  contrastLight: { bodyClass: 'vscode-high-contrast-light vscode-high-contrast', variables: { ...shared, ...contrastLight } },
};

/** The `style` attribute VS Code puts on the root element. */
export function rootStyle(theme) {
  return Object.entries(theme.variables).map(([name, value]) => `--vscode-${name}: ${value};`).join(' ');
}
