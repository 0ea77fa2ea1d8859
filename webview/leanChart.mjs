// esbuild plugin for the webview: lets esbuild drop the scales of Chart.js that nobody registered (about 15 kB).
// Their static fields read a property of another class, which esbuild must take for a side effect; wrapped in a call marked pure it may be dropped.
import { readFile } from 'node:fs/promises';

const impure = [/(?<=static defaults = )TimeScale\.defaults/g, /(?<=callback: )Ticks\.formatters\.\w+/g];

export const leanChart = {
  name: 'lean-chart',
  setup(build) {
    build.onLoad({ filter: /chart\.js[\\/]dist[\\/]chart\.js$/ }, async ({ path }) => {
      let contents = await readFile(path, 'utf8');
      for (const pattern of impure) contents = contents.replace(pattern, (value) => `/* @__PURE__ */ (() => ${value})()`);
      return { contents, loader: 'js' };
    });
  },
};
