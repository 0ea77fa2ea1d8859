import type { Ms } from '../engine';
import type { Tenant } from '../settings';
import type { Admission } from './policy';

interface Bucket {
  readonly tokensPerSecond: number;
  readonly burst: number;
  level: number;
  at: Ms | null;
}

/** Token buckets: a request takes its prompt and answer tokens out of its tenant's bucket, or gets 429 with the seconds until they are there. */
export function quotas(tenants: readonly Tenant[]): Admission {
  const buckets = new Map<string, Bucket>();
  for (const { name, quota } of tenants) if (quota) buckets.set(name, { ...quota, level: quota.burst, at: null });
  return {
    name: 'quotas',
    check: ({ tenant, prompt, output }, _load, now) => {
      const bucket = buckets.get(tenant);
      if (!bucket) return null;
      bucket.level = Math.min(bucket.burst, bucket.level + ((now - (bucket.at ?? now)) / 1000) * bucket.tokensPerSecond);
      bucket.at = now;
      // A request larger than the bucket must be possible: it takes a full bucket.
      const price = Math.min(prompt.length + output.length, bucket.burst);
      if (bucket.level >= price) {
        bucket.level -= price;
        return null;
      }
      const retryAfter = (price - bucket.level) / bucket.tokensPerSecond;
      return { status: 429, code: 'rate_limit_exceeded', message: `Quota of ${tenant} used up: ${bucket.tokensPerSecond} tokens per second. Try again in ${retryAfter.toFixed(1)} s.`, retryAfter };
    },
  };
}
