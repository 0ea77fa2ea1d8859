/** What is exchanged, loaded on first use: reports as files, results of other tools, plans for them. */
import { samplesToCsv } from './csv';
import { toJson } from './json';
import { toMarkdown } from './markdown';

export { readForeign } from './foreign';
export { documentedOptions, handOver, handOverTools, type HandOver, type HandOverTool } from './handOver';

/** A report as a file, by format. */
export const exporters = { json: toJson, csv: samplesToCsv, markdown: toMarkdown } as const;
