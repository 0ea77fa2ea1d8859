/** The names that package.json declares, as types: a test keeps both equal. */

/** Command ids by what they do. */
export const commandIds = {
  probePrompt: 'firstToken.probePrompt',
  spotCheck: 'firstToken.spotCheck',
  tryDemo: 'firstToken.tryDemo',
  stop: 'firstToken.stop',
  addEndpoint: 'firstToken.addEndpoint',
  selectEndpoint: 'firstToken.selectEndpoint',
  setKey: 'firstToken.setKey',
  removeKey: 'firstToken.removeKey',
  startDemo: 'firstToken.startDemo',
  stopDemo: 'firstToken.stopDemo',
  openLab: 'firstToken.openLab',
  sweep: 'firstToken.sweep',
  rate: 'firstToken.rate',
  batching: 'firstToken.batching',
  interference: 'firstToken.interference',
  fairness: 'firstToken.fairness',
  overload: 'firstToken.overload',
  encoder: 'firstToken.encoder',
  showLastReport: 'firstToken.showLastReport',
  openReport: 'firstToken.openReport',
  compareReports: 'firstToken.compareReports',
  exportReport: 'firstToken.exportReport',
  copyAsCurl: 'firstToken.copyAsCurl',
  handOver: 'firstToken.handOver',
  showLog: 'firstToken.showLog',
  editEndpoints: 'firstToken.editEndpoints',
  deleteReport: 'firstToken.deleteReport',
  prove: 'firstToken.prove',
  proveMore: 'firstToken.proveMore',
  selectCacheRule: 'firstToken.selectCacheRule',
  compareRenders: 'firstToken.compareRenders',
  compareRequests: 'firstToken.compareRequests',
  sinceLastCommit: 'firstToken.sinceLastCommit',
  scanPrompts: 'firstToken.scanPrompts',
  stopScan: 'firstToken.stopScan',
  goToBreaker: 'firstToken.goToBreaker',
  classifyVariable: 'firstToken.classifyVariable',
  forgetInputs: 'firstToken.forgetInputs',
} as const;

/** A command id of ours. */
export type CommandId = (typeof commandIds)[keyof typeof commandIds];

/** Names of the settings, without the section. */
export const settingNames = ['endpoints', 'slo', 'objective', 'probe', 'prefix', 'reports', 'promptFiles', 'readerPace', 'lens', 'network'] as const;

/** A setting's name, without the section. */
export type SettingName = (typeof settingNames)[number];

/** The section all our settings stand in. */
export const section = 'firstToken';

/** Keys that `when` clauses read, with the type each is set to. */
export interface ContextKeys {
  /** A probe is running. */
  readonly 'firstToken.running': boolean;
  /** The demo endpoint is up. */
  readonly 'firstToken.demoRunning': boolean;
  /** There is an endpoint to choose. */
  readonly 'firstToken.hasEndpoints': boolean;
  /** There is a report in the store. */
  readonly 'firstToken.hasReports': boolean;
  /** The active editor shows a prompt file. */
  readonly 'firstToken.promptFile': boolean;
  /** The prompt files of the workspace are being searched. */
  readonly 'firstToken.scanning': boolean;
}

/** All context keys; the compiler sees to it that none is missing. */
export const contextKeys = Object.keys({
  'firstToken.running': true,
  'firstToken.demoRunning': true,
  'firstToken.hasEndpoints': true,
  'firstToken.hasReports': true,
  'firstToken.promptFile': true,
  'firstToken.scanning': true,
} satisfies Record<keyof ContextKeys, true>) as readonly (keyof ContextKeys)[];

/** View ids. */
export const viewIds = { endpoints: 'firstToken.endpoints', prompts: 'firstToken.prompts', reports: 'firstToken.reports' } as const;

/** Type of the report panel, for its serializer. */
export const panelType = 'firstToken.report';

/** Type of the lab page, for its serializer. */
export const labPanelType = 'firstToken.lab';
