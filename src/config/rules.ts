// The rules between settings, all of them. A rule that is broken names both settings; which of them is wrong only
// their author knows.
import { assert } from "../base/assert.ts";
import { formatDuration } from "./duration.ts";
import type { SettingKey, SettingValue } from "./schema.ts";

/** A resolved value by its key. */
export type ValueReader = <Key extends SettingKey>(key: Key) => SettingValue<Key>;

export interface Contradiction {
  readonly key: SettingKey;
  readonly value: string;
  readonly otherKey: SettingKey;
  readonly otherValue: string;
  readonly rule: string;
}

type DurationKey = Extract<SettingKey, `liveness.${string}` | `coordinator.lease_${string}`>;

interface DurationRule {
  readonly key: DurationKey;
  readonly otherKey: DurationKey;
  /** Whether `value` and `other`, in milliseconds, go together. */
  readonly holds: (value: number, other: number) => boolean;
  readonly rule: string;
}

/** Shares of the failure timeout, which is the lease's time to live: the most for renewals and deadline, and their defaults. */
export const LEASE_SHARES = { renewal: 5, deadline: 0.8 } as const;

const DURATION_RULES: readonly DurationRule[] = [
  {
    key: "liveness.worker_self_fence_timeout",
    otherKey: "liveness.coordinator_failure_timeout",
    holds: (selfFenceMs, failureMs) => selfFenceMs < failureMs,
    rule: "worker_self_fence_timeout must be less than coordinator_failure_timeout: a worker stops before its work is given away",
  },
  {
    key: "liveness.clock_skew_budget",
    otherKey: "liveness.heartbeat_interval",
    holds: (skewMs, intervalMs) => skewMs < 2 * intervalMs,
    rule: "clock_skew_budget must be less than 2 × heartbeat_interval",
  },
  {
    key: "liveness.clock_skew_budget",
    otherKey: "liveness.coordinator_failure_timeout",
    holds: (skewMs, failureMs) => skewMs < failureMs,
    rule: "clock_skew_budget must be less than coordinator_failure_timeout: a worker is suspected before it is failed",
  },
  {
    key: "liveness.heartbeat_interval",
    otherKey: "liveness.coordinator_failure_timeout",
    holds: (intervalMs, failureMs) => 2 * intervalMs <= failureMs,
    rule: "coordinator_failure_timeout must be at least 2 × heartbeat_interval",
  },
  {
    key: "liveness.heartbeat_interval",
    otherKey: "liveness.worker_self_fence_timeout",
    holds: (intervalMs, selfFenceMs) => 2 * intervalMs <= selfFenceMs,
    rule: "worker_self_fence_timeout must be at least 2 × heartbeat_interval",
  },
  {
    key: "liveness.remove_after",
    otherKey: "liveness.coordinator_failure_timeout",
    holds: (removeMs, failureMs) => removeMs >= failureMs,
    rule: "remove_after must be at least coordinator_failure_timeout",
  },
  {
    key: "coordinator.lease_renewal",
    otherKey: "liveness.coordinator_failure_timeout",
    holds: (renewalMs, ttlMs) => renewalMs <= ttlMs / LEASE_SHARES.renewal,
    rule: "lease_renewal must be at most a fifth of coordinator_failure_timeout: a leader has several tries",
  },
  {
    key: "coordinator.lease_deadline",
    otherKey: "liveness.coordinator_failure_timeout",
    holds: (deadlineMs, ttlMs) => deadlineMs <= ttlMs * LEASE_SHARES.deadline,
    rule: "lease_deadline must be at most four fifths of coordinator_failure_timeout: a leader stops before another can begin",
  },
  {
    key: "coordinator.lease_deadline",
    otherKey: "coordinator.lease_renewal",
    holds: (deadlineMs, renewalMs) => deadlineMs >= 2 * renewalMs,
    rule: "lease_deadline must be at least 2 × lease_renewal: one late renewal ends no leadership",
  },
];

const CERTIFICATES_RULE = "set ca_file, cert_file and key_file together, or none of them";

/**
 * Every rule in words, for the documents.
 * @internal
 */
export function ruleTexts(): string[] {
  return [...DURATION_RULES.map(({ rule }) => rule), CERTIFICATES_RULE];
}

/** The first rule that the values break. */
export function findContradiction(read: ValueReader): Contradiction | undefined {
  for (const { key, otherKey, holds, rule } of DURATION_RULES) {
    const [value, other] = [read(key), read(otherKey)];
    assert(value !== undefined && other !== undefined, "a duration has a value, given or derived");
    if (holds(value, other)) continue;
    return { key, value: formatDuration(value), otherKey, otherValue: formatDuration(other), rule };
  }
  return certificatesContradiction(read);
}

function certificatesContradiction(read: ValueReader): Contradiction | undefined {
  const keys = ["transport.ca_file", "transport.cert_file", "transport.key_file"] as const;
  const key = keys.find((candidate) => read(candidate) !== undefined);
  const otherKey = keys.find((candidate) => read(candidate) === undefined);
  if (key === undefined || otherKey === undefined) return undefined;
  return {
    key,
    value: read(key) ?? "",
    otherKey,
    otherValue: "(not set)",
    rule: CERTIFICATES_RULE,
  };
}
