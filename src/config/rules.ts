// The rules between settings, all of them. A rule that is broken names both settings; which of them is wrong only
// their author knows.
import { isLoopback, parseAddress } from "../base/address.ts";
import { formatDuration } from "./duration.ts";
import { LIMITS } from "./limits.ts";
import { formatPostgres, parsePostgresUrl } from "./postgres-url.ts";
import type { SettingKey, SettingValue } from "./schema.ts";
import { parseWebSocketUrl } from "./websocket-url.ts";

/** A resolved value by its key. */
export type ValueReader = <Key extends SettingKey>(key: Key) => SettingValue<Key>;

export interface Contradiction {
  readonly key: SettingKey;
  readonly value: string;
  readonly otherKey: SettingKey;
  readonly otherValue: string;
  readonly rule: string;
}

type DurationKey = Extract<
  SettingKey,
  `liveness.${string}` | "coordinator.heartbeat_interval" | "coordinator.failover_threshold"
>;

interface DurationRule {
  readonly key: DurationKey;
  readonly otherKey: DurationKey;
  /** Whether `value` and `other`, in milliseconds, go together. */
  readonly holds: (value: number, other: number) => boolean;
  readonly rule: string;
}

/** A leader has so many tries to renew its lease before another one may take it. */
const HEARTBEATS_MIN = 3;

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
    key: "coordinator.heartbeat_interval",
    otherKey: "coordinator.failover_threshold",
    holds: (heartbeatMs, thresholdMs) => thresholdMs >= HEARTBEATS_MIN * heartbeatMs,
    rule: "failover_threshold must be at least 3 × heartbeat_interval: a leader has several tries",
  },
];

const STORAGE_RULE = "set storage.path for one coordinator, or storage.url for several, not both";
const PASSWORD_FILE_RULE = "storage.password_file is for storage.url";
const PASSWORD_RULE = "give the password in storage.password_file, or in storage.url, not in both";
const QUORUM_RULE =
  "election_quorum = majority takes three coordinators: of two, neither is a majority without the other";
const ADVERTISED_RULE =
  "where coordinators share a database, others are told advertised_addr: it must be an address that they can reach, as listen_addr is";
const INSPECTOR_RULE =
  "inspect.stately names another machine: with inspect.stately_remote = true the states and ids of this run are told to it, else it must be ws://127.0.0.1:PORT or another address of this machine";
const KEYS_RULE = `total_partitions × max_keys_per_partition must be at most ${LIMITS.keys}: the coordinator has every key in memory`;
const CERTIFICATES_RULE = "set ca_file, cert_file and key_file together, or none of them";

/**
 * Every rule in words, for the documents.
 * @internal
 */
export function ruleTexts(): string[] {
  return [
    ...DURATION_RULES.map(({ rule }) => rule),
    STORAGE_RULE,
    PASSWORD_FILE_RULE,
    PASSWORD_RULE,
    QUORUM_RULE,
    ADVERTISED_RULE,
    INSPECTOR_RULE,
    KEYS_RULE,
    CERTIFICATES_RULE,
  ];
}

/** The first rule that the values break. */
export function findContradiction(read: ValueReader): Contradiction | undefined {
  for (const { key, otherKey, holds, rule } of DURATION_RULES) {
    const [value, other] = [read(key), read(otherKey)];
    if (holds(value, other)) continue;
    return { key, value: formatDuration(value), otherKey, otherValue: formatDuration(other), rule };
  }
  return (
    storageContradiction(read) ??
    quorumContradiction(read) ??
    advertisedContradiction(read) ??
    inspectorContradiction(read) ??
    keysContradiction(read) ??
    certificatesContradiction(read)
  );
}

function quorumContradiction(read: ValueReader): Contradiction | undefined {
  const [key, otherKey] = ["coordinator.election_quorum", "worker.coordinator_addr"] as const;
  const addresses = read(otherKey) ?? [];
  if (read(key) !== "majority" || addresses.length !== 2) return undefined;
  return { key, value: "majority", otherKey, otherValue: addresses.join(", "), rule: QUORUM_RULE };
}

/** No value of storage.url is shown: a password may stand in it. */
function storageContradiction(read: ValueReader): Contradiction | undefined {
  const [path, url, file] = [read("storage.path"), read("storage.url"), read("storage.password_file")];
  if (path !== undefined && url !== undefined) {
    const other = { otherKey: "storage.url", otherValue: shownUrl(url) } as const;
    return { key: "storage.path", value: path, ...other, rule: STORAGE_RULE };
  }
  if (file === undefined) return undefined;
  const password = { key: "storage.password_file", value: file, otherKey: "storage.url" } as const;
  if (url === undefined) return { ...password, otherValue: "(not set)", rule: PASSWORD_FILE_RULE };
  const isTwice = parsePostgresUrl(url)?.password !== undefined;
  return isTwice ? { ...password, otherValue: shownUrl(url), rule: PASSWORD_RULE } : undefined;
}

/** A leader that others are told is on their own machine would send them nowhere. */
function advertisedContradiction(read: ValueReader): Contradiction | undefined {
  const [advertised, listen] = [read("transport.advertised_addr"), read("transport.listen_addr")];
  if (read("storage.url") === undefined || advertised === undefined || listen === undefined) return undefined;
  const isOfHere = (text: string): boolean => isLoopback(parseAddress(text)?.host ?? "");
  if (!isOfHere(advertised) || isOfHere(listen)) return undefined;
  const other = { otherKey: "transport.listen_addr", otherValue: listen } as const;
  return { key: "transport.advertised_addr", value: advertised, ...other, rule: ADVERTISED_RULE };
}

function shownUrl(url: string): string {
  const parsed = parsePostgresUrl(url);
  return parsed === undefined ? "" : formatPostgres(parsed.address);
}

function inspectorContradiction(read: ValueReader): Contradiction | undefined {
  const [key, otherKey] = ["inspect.stately", "inspect.stately_remote"] as const;
  const url = parseWebSocketUrl(read(key) ?? "");
  if (url === undefined || url.isOfThisMachine || read(otherKey)) return undefined;
  return { key, value: url.shown, otherKey, otherValue: "false", rule: INSPECTOR_RULE };
}

function keysContradiction(read: ValueReader): Contradiction | undefined {
  const [key, otherKey] = ["keys.max_keys_per_partition", "keys.total_partitions"] as const;
  const [keys, partitions] = [read(key), read(otherKey)];
  if (keys * partitions <= LIMITS.keys) return undefined;
  return { key, value: String(keys), otherKey, otherValue: String(partitions), rule: KEYS_RULE };
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
