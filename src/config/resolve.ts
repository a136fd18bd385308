// File, then environment, then flags, resolved once into one frozen object, or refused with the key, the value and what is
// allowed. Pure: the file's text, the variables and the flags come in; src/config/load.ts reads the disk.
import { join } from "node:path";
import { assert } from "../base/assert.ts";
import { failure } from "../base/errors.ts";
import { parseUlid } from "../base/ids.ts";
import type { RunId } from "../base/ids.ts";
import { formatAddress, localAddressOf, parseAddress } from "../base/address.ts";
import type { FailuresAllowed } from "./failures-allowed.ts";
import { parseFailuresAllowed } from "./failures-allowed.ts";
import { gatherSettings } from "./gather.ts";
import type { ConfigSources, GivenSettings } from "./gather.ts";
import type { ItemLimits } from "./limits.ts";
import { findContradiction, LEASE_SHARES } from "./rules.ts";
import type { ValueReader } from "./rules.ts";
import { SETTING_KEYS, settingOf } from "./schema.ts";
import type { SettingKey, SettingValue } from "./schema.ts";
import type { ConfigRole } from "./settings/setting.ts";
import { describeAllowed } from "./value.ts";

/** The configuration of every role. Deep-frozen; durations in milliseconds, sizes in bytes, paths absolute. */
export interface ClientConfig {
  /** Path of the file. */
  readonly source: string;
  readonly runId: RunId;
  readonly transport: {
    readonly tlsDir: string;
    /** Where the coordinator listens, if this configuration says it. */
    readonly listenAddr?: string;
    /** Files of a CA of the user's own; undefined: the development CA in `tlsDir`. */
    readonly certificates: CertificateFiles | undefined;
    readonly advertisedNames: readonly string[];
  };
  /** Limits of an enrolment bundle. */
  readonly enrolment: { readonly quota: number; readonly lifetimeMs: number };
  readonly liveness: {
    readonly heartbeatIntervalMs: number;
    readonly workerSelfFenceTimeoutMs: number;
    readonly coordinatorFailureTimeoutMs: number;
    readonly clockSkewBudgetMs: number;
    readonly removeAfterMs: number;
  };
  /** Within `coordinatorFailureTimeoutMs`, which is its time to live. */
  readonly lease: { readonly renewalMs: number; readonly deadlineMs: number };
  /** Limits on the cost of a run, which its coordinator keeps. */
  readonly run: {
    readonly maxAttempts: number;
    readonly maxLost: number;
    readonly itemTimeoutMs: number | undefined;
    readonly maxFails: FailuresAllowed | undefined;
    readonly timeLimitMs: number | undefined;
  };
  readonly limits: ItemLimits;
  readonly worker: {
    readonly stateDir: string;
    readonly coordinatorAddr: string;
    /** The enrolment bundle's file. */
    readonly enrolment: string;
    readonly slots: number;
    /** Files of manifests. */
    readonly plugins: readonly string[];
    readonly hotReload: boolean;
    readonly onFence: SettingValue<"worker.on_fence">;
    readonly checkpointIntervalMs: number;
    readonly startTimeoutMs: number;
    readonly preemption: SettingValue<"worker.preemption">;
    readonly metadataAddr: string;
  };
  /** The backend for smokes and benchmarks. */
  readonly mock: {
    readonly sleepMs: number;
    readonly distribution: SettingValue<"mock.distribution">;
    readonly failurePercent: number;
    readonly journal: string | undefined;
  };
  readonly events: { readonly hide: readonly string[]; readonly bufferBytes: number };
  readonly log: {
    readonly level: SettingValue<"log.level">;
    readonly format: SettingValue<"log.format">;
  };
}

/** The configuration of a coordinator, with its own settings. */
export interface ResolvedConfig extends ClientConfig {
  readonly storage: { readonly path: string };
  readonly transport: ClientConfig["transport"] & { readonly listenAddr: string };
}

interface CertificateFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Throws `config_syntax`, `config_unknown_key`, `config_invalid_value`, `config_missing_key` or `config_contradiction`. */
export function resolveConfig(role: "coordinator", sources: ConfigSources): ResolvedConfig;
export function resolveConfig(role: ConfigRole, sources: ConfigSources): ClientConfig;
export function resolveConfig(role: ConfigRole, sources: ConfigSources): ClientConfig {
  const given = gatherSettings(sources);
  deriveCoordinatorAddress(given, role);
  deriveLeaseTimes(given);
  refuseMissing(given, role, sources);
  const read: ValueReader = <Key extends SettingKey>(key: Key) =>
    // Each value was made by parseValue from the entry of its own key.
    given.get(key)?.value as SettingValue<Key>;
  refuseContradiction(given, read, sources);
  return deepFreeze(assemble(read, sources));
}

/** Without an address of its own, the coordinator is where this file lets it listen, seen from this machine. */
function deriveCoordinatorAddress(given: GivenSettings, role: ConfigRole): void {
  const listenAddr = given.get("transport.listen_addr")?.value;
  if (given.has("worker.coordinator_addr") || typeof listenAddr !== "string") return;
  const listen = parseAddress(listenAddr);
  assert(listen !== undefined, "an address was checked when it was gathered");
  // Which port 0 became, only the coordinator learns.
  if (listen.port === 0 && role !== "coordinator") return;
  given.set("worker.coordinator_addr", { value: formatAddress(localAddressOf(listen)), source: undefined });
}

function deriveLeaseTimes(given: GivenSettings): void {
  const ttlMs = given.get("liveness.coordinator_failure_timeout")?.value;
  assert(typeof ttlMs === "number", "the failure timeout has a default");
  const derive = (key: SettingKey, value: number): void => {
    if (!given.has(key)) given.set(key, { value, source: undefined });
  };
  derive("coordinator.lease_renewal", Math.floor(ttlMs / LEASE_SHARES.renewal));
  derive("coordinator.lease_deadline", Math.floor(ttlMs * LEASE_SHARES.deadline));
}

function refuseMissing(given: GivenSettings, role: ConfigRole, sources: ConfigSources): void {
  for (const key of SETTING_KEYS) {
    const setting = settingOf(key);
    if (given.has(key) || setting.requiredFor?.includes(role) !== true) continue;
    const allowed = describeAllowed(setting, sources.topics);
    throw failure("config_missing_key", { source: sources.file.path, key, allowed });
  }
}

function refuseContradiction(given: GivenSettings, read: ValueReader, sources: ConfigSources): void {
  const found = findContradiction(read);
  if (found === undefined) return;
  const { key, value, otherKey, otherValue, rule } = found;
  const source = given.get(key)?.source ?? given.get(otherKey)?.source ?? sources.file.path;
  throw failure("config_contradiction", { source, key, value, otherKey, otherValue, rule });
}

function assemble(read: ValueReader, sources: ConfigSources): ClientConfig {
  const runId = parseUlid<RunId>(read("run_id") ?? "");
  const coordinatorAddr = read("worker.coordinator_addr");
  assert(runId !== undefined && coordinatorAddr !== undefined, "what is missing was refused");
  const [renewalMs, deadlineMs] = [read("coordinator.lease_renewal"), read("coordinator.lease_deadline")];
  assert(renewalMs !== undefined && deadlineMs !== undefined, "the lease's times were derived");
  const [path, listenAddr] = [read("storage.path"), read("transport.listen_addr")];
  const tlsDir = read("transport.tls_dir");
  return {
    source: sources.file.path,
    runId,
    ...(path === undefined ? {} : { storage: { path } }),
    transport: {
      ...(listenAddr === undefined ? {} : { listenAddr }),
      tlsDir,
      certificates: certificatesOf(read),
      advertisedNames: read("transport.advertised_names"),
    },
    enrolment: { quota: read("enrolment.quota"), lifetimeMs: read("enrolment.lifetime") },
    liveness: {
      heartbeatIntervalMs: read("liveness.heartbeat_interval"),
      workerSelfFenceTimeoutMs: read("liveness.worker_self_fence_timeout"),
      coordinatorFailureTimeoutMs: read("liveness.coordinator_failure_timeout"),
      clockSkewBudgetMs: read("liveness.clock_skew_budget"),
      removeAfterMs: read("liveness.remove_after"),
    },
    lease: { renewalMs, deadlineMs },
    run: {
      maxAttempts: read("run.max_attempts"),
      maxLost: read("run.max_lost"),
      itemTimeoutMs: read("run.item_timeout"),
      maxFails: parseFailuresAllowed(read("run.max_fails") ?? ""),
      timeLimitMs: read("run.time_limit"),
    },
    limits: { payloadBytes: read("limits.payload"), outputBytes: read("limits.output") },
    worker: {
      stateDir: read("worker.state_dir"),
      coordinatorAddr,
      enrolment: read("worker.enrolment") ?? join(tlsDir, "enrolment.pem"),
      slots: read("worker.slots"),
      plugins: read("worker.plugins"),
      hotReload: read("worker.hot_reload"),
      onFence: read("worker.on_fence"),
      checkpointIntervalMs: read("worker.checkpoint_interval"),
      startTimeoutMs: read("worker.start_timeout"),
      preemption: read("worker.preemption"),
      metadataAddr: read("worker.metadata_addr"),
    },
    mock: {
      sleepMs: read("mock.sleep"),
      distribution: read("mock.distribution"),
      failurePercent: read("mock.failure_percent"),
      journal: read("mock.journal"),
    },
    events: { hide: read("events.hide"), bufferBytes: read("events.buffer") },
    log: { level: read("log.level"), format: read("log.format") },
  };
}

function certificatesOf(read: ValueReader): CertificateFiles | undefined {
  const caFile = read("transport.ca_file");
  const certFile = read("transport.cert_file");
  const keyFile = read("transport.key_file");
  if (caFile === undefined || certFile === undefined || keyFile === undefined) return undefined;
  return { caFile, certFile, keyFile };
}

function deepFreeze<Value extends object>(value: Value): Value {
  for (const inner of Object.values(value)) {
    if (typeof inner === "object" && inner !== null) deepFreeze(inner);
  }
  return Object.freeze(value);
}
