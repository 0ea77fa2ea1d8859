/** Builds the machinery that settings describe: engines, policies, fleets. */
import { Engine, type Backend } from './engine';
import { Fleet } from './fleet';
import { Gate } from './gate';
import { loadTime } from './model';
import { boundedQueue } from './policy/boundedQueue';
import { chunkedPrefill } from './policy/chunkedPrefill';
import { continuous } from './policy/continuous';
import { FairQueue } from './policy/fairQueue';
import { ArrivalOrder, type Admission, type BatchingPolicy, type QueueDiscipline } from './policy/policy';
import { PriorityOrder } from './policy/priority';
import { quotas } from './policy/quotas';
import { requestLevel } from './policy/requestLevel';
import { leastQueue, prefixAffinity, roundRobin, type Router } from './policy/router';
import { shedding } from './policy/shedding';
import { speculative } from './policy/speculative';
import { SplitPools } from './policy/splitPools';
import { timedBatch } from './policy/timedBatch';
import type { BackendSettings } from './settings';

/** A backend as the settings describe it. It has no clock. */
export function assemble(settings: BackendSettings): Backend {
  const admissions = admissionsOf(settings);
  const served = serving(settings);
  return admissions.length === 0 ? served : new Gate(served, admissions);
}

function serving(settings: BackendSettings): Backend {
  const { split, hardware } = settings;
  if (split) {
    const pool = (replicas: number): Backend => fleet({ ...settings, replicas, router: 'least-queue' });
    return new SplitPools({ prefill: pool(split.prefill), decode: pool(split.decode), hardware, linkBandwidth: split.linkBandwidth });
  }
  return settings.replicas === 1 && !settings.autoscale && settings.deadReplica === null ? engine(settings) : fleet(settings);
}

function fleet(settings: BackendSettings): Fleet {
  return new Fleet({
    replicas: settings.autoscale?.min ?? settings.replicas,
    router: router(settings),
    replica: () => engine(settings),
    autoscale: settings.autoscale,
    startTime: settings.slowStart ?? loadTime(settings.hardware),
    deadReplica: settings.deadReplica,
  });
}

function engine(settings: BackendSettings): Engine {
  return new Engine({
    hardware: settings.hardware,
    batching: batching(settings),
    queue: discipline(settings),
    maxRunning: settings.maxRunning,
    prefixCaching: settings.prefixCaching,
    ...(settings.kvBlocks === null ? {} : { kvBlocks: settings.kvBlocks }),
  });
}

function batching(settings: BackendSettings): BatchingPolicy {
  if (settings.policy === 'request-level') return requestLevel({ gather: settings.gather, cost: settings.batchCost });
  if (settings.policy === 'timed') return timedBatch({ size: settings.batchSize, timeout: settings.batchTimeout, cost: settings.batchCost });
  if (settings.speculative) return speculative({ ...settings.speculative, seed: settings.seed });
  return settings.chunkedPrefill === null ? continuous() : chunkedPrefill(settings.chunkedPrefill);
}

function discipline(settings: BackendSettings): QueueDiscipline {
  if (settings.discipline === 'fair') return new FairQueue(new Map(settings.tenants.map(({ name, weight }) => [name, weight])));
  return settings.discipline === 'priority' ? new PriorityOrder() : new ArrivalOrder();
}

function router(settings: BackendSettings): Router {
  if (settings.router === 'prefix-affinity') return prefixAffinity(settings.spill);
  return settings.router === 'least-queue' ? leastQueue() : roundRobin();
}

function admissionsOf(settings: BackendSettings): Admission[] {
  const list: Admission[] = [];
  if (settings.tenants.some(({ quota }) => quota !== null)) list.push(quotas(settings.tenants));
  if (settings.queueLimit !== null) list.push(boundedQueue(settings.queueLimit));
  if (settings.shedAbove !== null) list.push(shedding(settings.shedAbove));
  return list;
}
