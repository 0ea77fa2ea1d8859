/** What is exchanged with other tools, loaded on first use: results that are read, plans that are handed over. */
export { readForeign } from './foreign';
export { documentedOptions, handOver, handOverTools, type HandOver, type HandOverTool } from './handOver';
