// Mocha reporter of every tier: prints failures in full and skips with their reason, and appends one JSON line of counts to FIRST_TOKEN_RESULTS for the final tally.
// FIRST_TOKEN_TRY=first keeps the counts of a run that failed out of the tally: the runner has it run once more.
const { appendFileSync } = require('node:fs');
const mocha = require('mocha');

module.exports = class Tally extends mocha.reporters.Base {
  constructor(runner, options) {
    super(runner, options);
    const tier = process.env.FIRST_TOKEN_TIER ?? 'unit';
    const skipped = [];
    let file = '';
    runner.on('suite', (suite) => {
      if (suite.root || !suite.parent?.root) return;
      file = suite.title;
      console.log(`  ${file}`);
    });
    runner.on('pass', (test) => {
      if (test.speed === 'slow' && process.env.FIRST_TOKEN_SLOW) console.log(`    slow ${test.duration} ms: ${test.fullTitle()}`);
    });
    runner.on('fail', (test, error) => {
      console.log(`    FAILED ${test.fullTitle()}\n      ${String(error?.stack ?? error).replace(/\n/g, '\n      ')}`);
    });
    runner.on('pending', (test) => {
      // What the product leaves alone by design is listed, but is no gap of this machine.
      if (test.title.includes('(out of scope: ')) {
        console.log(`    ${test.fullTitle()}`);
        return;
      }
      skipped.push(test.fullTitle());
      console.log(`    skipped: ${test.fullTitle()}`);
    });
    runner.once('end', () => {
      const { passes, failures } = this.stats;
      console.log(`  ${tier}: ${passes} passed, ${failures} failed${skipped.length ? `, ${skipped.length} skipped` : ''}`);
      if (process.env.FIRST_TOKEN_RESULTS && !(failures > 0 && process.env.FIRST_TOKEN_TRY === 'first')) {
        appendFileSync(process.env.FIRST_TOKEN_RESULTS, JSON.stringify({ tier, passed: passes, failed: failures, skipped }) + '\n');
      }
    });
  }
};
