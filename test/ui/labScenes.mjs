// The lab page alone in headless Chromium, its questions answered by the lab's own code:  node test/ui/labScenes.mjs [folder] [name…]
import { build } from 'esbuild';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { buildPanel, launch, openPanel } from './panelHarness.mjs';

const root = path.resolve(import.meta.dirname, '../..');

/** What the thread behind the page answers, run here. */
export async function loadLab() {
  const outfile = path.join(os.tmpdir(), `first-token-lab-${process.pid}.cjs`);
  await build({ stdin: { contents: `export * from './simulator/lab'; export * from './editor/labReport'; export { lessons } from '../webview/labSettings';`, resolveDir: path.join(root, 'src'), loader: 'ts' }, bundle: true, platform: 'node', format: 'cjs', outfile, logLevel: 'warning' });
  return createRequire(import.meta.url)(outfile);
}

/** Answers the page's last question as the editor does. */
export async function answerLab(panel, lab) {
  const posted = await panel.posted();
  if (!panel.offered) {
    panel.offered = true;
    await panel.post({ type: 'labOptions', models: lab.labModels, gpus: lab.labGpus });
  }
  const question = posted.findLast((message) => message.type === 'labRun');
  try {
    const [a, b] = [['A', question.a], ['B', question.b]].map(([name, flags]) => lab.labReport(name, lab.runLab(flags, question.load), '0'));
    await panel.post({ type: 'compare', a, b });
  } catch (error) {
    await panel.post({ type: 'labProblem', side: error.name === 'LabError' ? null : 'A', message: error.message });
  }
  await panel.settle();
}

const plain = async (panel, lab) => answerLab(panel, lab);
const lesson = (id) => async (panel, lab) => {
  await panel.page.getByLabel('Compare').selectOption(id);
  await answerLab(panel, lab);
};

export const labScenes = {
  dark: { page: { theme: 'dark', width: 1000 }, play: plain },
  light: { page: { theme: 'light', width: 1000 }, play: lesson('chunked') },
  contrast: { page: { theme: 'contrast', width: 1000 }, play: lesson('fair') },
  narrow: { page: { theme: 'dark', width: 380 }, play: lesson('queue') },
  problem: { page: { theme: 'light', width: 800 }, play: async (panel, lab) => {
    await answerLab(panel, lab);
    await panel.page.getByLabel('Model').first().selectOption('llama-3.1-70b');
    await panel.page.getByRole('button', { name: 'Run both' }).click();
    await answerLab(panel, lab);
  } },
};

async function main(folder, only) {
  const bundle = await buildPanel('lab');
  const lab = await loadLab();
  const browser = await launch();
  for (const [name, scene] of Object.entries(labScenes)) {
    if (only.length > 0 && !only.includes(name)) continue;
    const panel = await openPanel(browser, bundle, scene.page);
    await scene.play(panel, lab);
    await panel.page.screenshot({ path: path.join(folder, `lab-${name}.png`), fullPage: true });
    console.log(name, panel.problems);
    await panel.close();
  }
  await browser.close();
}

if (process.argv[1] === import.meta.filename) void main(process.argv[2] ?? os.tmpdir(), process.argv.slice(3));
