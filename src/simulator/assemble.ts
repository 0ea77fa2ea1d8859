/** Builds the machinery that settings describe: engine, policies, fleet. */
import { Engine, type Backend } from './engine';
import { chunkedPrefill } from './policy/chunkedPrefill';
import { continuous } from './policy/continuous';
import type { BatchingPolicy } from './policy/policy';
import { requestLevel } from './policy/requestLevel';
import { timedBatch } from './policy/timedBatch';
import type { BackendSettings } from './settings';

/** A backend as the settings describe it. Pure: it has no clock. */
export function assemble(settings: BackendSettings): Backend {
  return engine(settings);
}

function engine(settings: BackendSettings): Engine {
  return new Engine({
    hardware: settings.hardware,
    batching: batching(settings),
    maxRunning: settings.maxRunning,
    prefixCaching: settings.prefixCaching,
    ...(settings.kvBlocks === null ? {} : { kvBlocks: settings.kvBlocks }),
  });
}

function batching(settings: BackendSettings): BatchingPolicy {
  if (settings.policy === 'request-level') return requestLevel(settings.batchCost);
  if (settings.policy === 'timed') return timedBatch({ size: settings.batchSize, timeout: settings.batchTimeout, cost: settings.batchCost });
  return settings.chunkedPrefill === null ? continuous() : chunkedPrefill(settings.chunkedPrefill);
}
