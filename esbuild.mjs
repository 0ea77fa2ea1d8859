// Builds everything into dist/. Flags: --watch, --production. Prints the size of each bundle and fails above its budget (production only).
import { build, context } from 'esbuild';
import { rmSync, existsSync } from 'node:fs';
import path from 'node:path';
import { leanChart } from './webview/leanChart.mjs';

const production = process.argv.includes('--production');
const watch = process.argv.includes('--watch');
const root = import.meta.dirname;

/** Lazy parts: `await import('../probe/index')` in another bundle stays an import of the sibling bundle, so it is loaded on first use only. */
const lazyEntries = {
  [path.join(root, 'src/probe/index')]: './probe.js',
  [path.join(root, 'src/probe/tokenCounting')]: './counting.js',
  [path.join(root, 'src/probe/scenario/prefixPrediction')]: './proofPlan.js',
  [path.join(root, 'src/prompt/index')]: './prompt.js',
  [path.join(root, 'src/prompt/requestPrompt')]: './request.js',
  [path.join(root, 'src/editor/prefixProving')]: './proving.js',
  [path.join(root, 'src/editor/prefixCompare')]: './compare.js',
  [path.join(root, 'src/report/exchange/index')]: './exchange.js',
  [path.join(root, 'src/prompt/tokenizer')]: './tokenizer.js',
  [path.join(root, 'src/prompt/format/code')]: './code.js',
};
const lazySiblings = {
  name: 'lazy-siblings',
  setup(b) {
    b.onResolve({ filter: /^\.\.?\// }, (args) => {
      if (args.kind !== 'dynamic-import') return undefined;
      const sibling = lazyEntries[path.join(args.resolveDir, args.path).replace(/\.(ts|js)$/, '')];
      return sibling ? { path: sibling, external: true } : undefined;
    });
  },
};

// 'module' first: jsonc-parser's main is UMD, whose requires a bundler cannot follow.
// The ES modules of yaml: its CommonJS build for Node cannot be shaken and is 18 kB larger.
const alias = { yaml: path.join(root, 'node_modules/yaml/browser/dist/index.js') };
const host = { alias, platform: 'node', format: 'cjs', mainFields: ['module', 'main'], target: 'node20', external: ['vscode'], plugins: [lazySiblings] };
const targets = [
  { in: 'src/extension.ts', out: 'extension', budgetKB: 150, ...host },
  // Thirteen API families, the scenarios and the answer check are in it; it is loaded with the first probe, never at activation.
  // 280 until proofs stop at the first lasting failure, skip what cannot be found, and word their advice for the editor and the terminal.
  { in: 'src/probe/index.ts', out: 'probe', budgetKB: 290, ...host },
  { in: 'src/probe/tokenCounting.ts', out: 'counting', ...host },
  { in: 'src/probe/scenario/prefixPrediction.ts', out: 'proofPlan', ...host },
  { in: 'src/probe/recorder.ts', out: 'recorder', budgetKB: 600, ...host },
  // Two dozen formats, their YAML, JSON and Jinja readers, and the judgement of prompts as they are sent; it is loaded in the analysis thread.
  // 370 until each fix was proved on the edited file before it is offered.
  { in: 'src/prompt/index.ts', out: 'prompt', budgetKB: 380, ...host },
  { in: 'src/prompt/requestPrompt.ts', out: 'request', ...host },
  { in: 'src/prompt/tokenizer.ts', out: 'tokenizer', ...host },
  { in: 'src/prompt/format/code.ts', out: 'code', ...host },
  { in: 'src/editor/prefixThread.ts', out: 'prefix', ...host },
  { in: 'src/editor/prefixProving.ts', out: 'proving', ...host },
  { in: 'src/editor/prefixCompare.ts', out: 'compare', ...host },
  { in: 'src/report/exchange/index.ts', out: 'exchange', ...host },
  { in: 'src/editor/labWorker.ts', out: 'lab', ...host },
  { in: 'src/simulator/server.ts', out: 'simulator', ...host },
  { in: 'src/cli.ts', out: 'cli', ...host, banner: { js: '#!/usr/bin/env node' } },
  // 220 until the panel of a proof had a verdict, a table and a comparison of its own.
  { in: 'webview/main.ts', out: 'webview', budgetKB: 228, platform: 'browser', format: 'iife', target: 'chrome132', plugins: [leanChart] },
  { in: 'webview/panel.css', out: 'webview', target: 'chrome132' },
  { in: 'webview/lab.ts', out: 'labPage', budgetKB: 220, platform: 'browser', format: 'iife', target: 'chrome132', plugins: [leanChart] },
  { in: 'webview/lab.css', out: 'labPage', target: 'chrome132' },
].filter((t) => existsSync(path.join(root, t.in)));

const options = ({ in: input, out, budgetKB: _, ...rest }) => ({
  entryPoints: [{ in: path.join(root, input), out }],
  outdir: path.join(root, 'dist'),
  bundle: true,
  minify: production,
  sourcemap: production ? false : 'linked',
  metafile: true,
  logLevel: 'warning',
  absWorkingDir: root,
  ...rest,
});

if (watch) {
  for (const target of targets) await (await context(options(target))).watch();
  console.log('watching');
} else {
  if (production) rmSync(path.join(root, 'dist'), { recursive: true, force: true });
  let over = 0;
  for (const target of targets) {
    const { metafile } = await build(options(target));
    const bytes = Object.entries(metafile.outputs).filter(([name]) => name.endsWith('.js')).reduce((sum, [, o]) => sum + o.bytes, 0);
    const kB = Math.round(bytes / 1000);
    const budget = target.budgetKB;
    if (production) console.log(`${target.out.padEnd(10)} ${String(kB).padStart(5)} kB${budget ? ` of ${budget} kB` : ''}`);
    if (production && budget && kB > budget) over += 1;
  }
  if (over > 0) {
    console.error(`${over} bundle(s) over budget`);
    process.exitCode = 1;
  }
}
