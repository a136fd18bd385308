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
import { readFleets } from "./fleet-file.ts";
import type { FleetSettings } from "./fleet.ts";
import { fleetSettings, gatherSettings } from "./gather.ts";
import type { ConfigSources, GivenSettings } from "./gather.ts";
import { findContradiction } from "./rules.ts";
import type { ValueReader } from "./rules.ts";
import { parsePostgresUrl } from "./postgres-url.ts";
import type { PostgresAddress } from "./postgres-url.ts";
import { SETTING_KEYS, settingOf } from "./schema.ts";
import type { SettingKey, SettingValue, TableValues } from "./schema.ts";
import type { ConfigRole } from "./settings/setting.ts";
import { describeAllowed, nameOf } from "./value.ts";

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
    /** Where others reach the coordinator of this configuration, if it says it. */
    readonly advertisedAddr?: string;
  };
  /** Limits of an enrolment bundle. */
  readonly enrolment: TableValues<"enrolment">;
  readonly liveness: TableValues<"liveness">;
  /** How several coordinators over one store agree on who leads. */
  readonly coordinator: TableValues<"coordinator">;
  /** Limits on the cost of a run, which its coordinator keeps. */
  readonly run: Omit<TableValues<"run">, "maxFails"> & { readonly maxFails: FailuresAllowed | undefined };
  readonly limits: TableValues<"limits">;
  /** Items that have keys. */
  readonly keys: TableValues<"keys">;
  readonly worker: TableValues<"worker"> & {
    /** Coordinators to ask, one at least: the one that leads is among them, or they name it. */
    readonly coordinatorAddr: readonly string[];
    /** The enrolment bundle's file. */
    readonly enrolment: string;
  };
  /** In the order of the file; empty: workers are started by hand. */
  readonly fleets: readonly FleetSettings[];
  /** The backend for smokes and benchmarks. */
  readonly mock: TableValues<"mock">;
  readonly events: TableValues<"events">;
  /** An inspector of the charts of this process. */
  readonly inspect: TableValues<"inspect">;
  readonly log: TableValues<"log">;
}

/** The configuration of a coordinator, with its own settings. */
export interface ResolvedConfig extends ClientConfig {
  readonly storage: StorageConfig & { readonly onRollback: "halt" | "accept" };
  readonly transport: ClientConfig["transport"] & {
    readonly listenAddr: string;
    readonly advertisedAddr: string;
  };
}

/** Where the database is: a directory of this machine, or a Postgres. */
export type StorageConfig =
  | { readonly path: string; readonly postgres?: undefined }
  | {
      readonly path?: undefined;
      readonly postgres: {
        readonly address: PostgresAddress;
        /** A function, so that nothing that shows the configuration shows it. */
        readonly password: () => string | undefined;
        readonly passwordFile: string | undefined;
      };
    };

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
  deriveAdvertisedAddress(given);
  refuseMissing(given, role, sources);
  const read: ValueReader = <Key extends SettingKey>(key: Key) =>
    // Each value was made by parseValue from the entry of its own key.
    given.get(key)?.value as SettingValue<Key>;
  refuseContradiction(given, read, sources);
  return deepFreeze(assemble(read, sources));
}

/** Without addresses of its own, the coordinator is where this file says that others reach it, or lets it listen, seen from this machine. */
function deriveCoordinatorAddress(given: GivenSettings, role: ConfigRole): void {
  const advertised = given.get("transport.advertised_addr")?.value;
  const listenAddr = given.get("transport.listen_addr")?.value;
  if (given.has("worker.coordinator_addr")) return;
  if (typeof advertised === "string")
    return void given.set("worker.coordinator_addr", { value: [advertised], source: undefined });
  if (typeof listenAddr !== "string") return;
  const listen = parseAddress(listenAddr);
  assert(listen !== undefined, "an address was checked when it was gathered");
  // Which port 0 became, only the coordinator learns.
  if (listen.port === 0 && role !== "coordinator") return;
  given.set("worker.coordinator_addr", { value: [formatAddress(localAddressOf(listen))], source: undefined });
}

/** Among several coordinators, this one is the one that listens there; where that does not tell, it is not guessed. */
function deriveAdvertisedAddress(given: GivenSettings): void {
  const coordinators = given.get("worker.coordinator_addr")?.value;
  const listenAddr = given.get("transport.listen_addr")?.value;
  if (given.has("transport.advertised_addr") || !Array.isArray(coordinators)) return;
  const addresses = coordinators as readonly string[];
  const own = addresses.length === 1 ? addresses[0] : addresses.find((address) => address === listenAddr);
  if (own !== undefined) given.set("transport.advertised_addr", { value: own, source: undefined });
}

function refuseMissing(given: GivenSettings, role: ConfigRole, sources: ConfigSources): void {
  for (const key of SETTING_KEYS) {
    const setting = settingOf(key);
    if (given.has(key) || setting.requiredFor?.includes(role) !== true) continue;
    if (SETTING_KEYS.some((other) => other === setting.unless && given.has(other))) continue;
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
  const table = <Table extends string>(name: Table): TableValues<Table> => tableOf(name, read);
  const runId = parseUlid<RunId>(read("run_id") ?? "");
  const coordinatorAddr = read("worker.coordinator_addr");
  assert(runId !== undefined && coordinatorAddr !== undefined, "what is missing was refused");
  const [storage, listenAddr] = [storageOf(read), read("transport.listen_addr")];
  const advertisedAddr = read("transport.advertised_addr");
  const tlsDir = read("transport.tls_dir");
  const enrolment = read("worker.enrolment") ?? join(tlsDir, "enrolment.pem");
  return {
    source: sources.file.path,
    runId,
    ...(storage === undefined ? {} : { storage: { ...storage, onRollback: read("storage.on_rollback") } }),
    transport: {
      ...(listenAddr === undefined ? {} : { listenAddr }),
      tlsDir,
      certificates: certificatesOf(read),
      advertisedNames: read("transport.advertised_names"),
      ...(advertisedAddr === undefined ? {} : { advertisedAddr }),
    },
    enrolment: table("enrolment"),
    liveness: table("liveness"),
    coordinator: table("coordinator"),
    run: { ...table("run"), maxFails: parseFailuresAllowed(read("run.max_fails") ?? "") },
    limits: table("limits"),
    keys: table("keys"),
    worker: { ...table("worker"), coordinatorAddr, enrolment },
    fleets: readFleets(sources.file.path, fleetSettings(sources)),
    mock: table("mock"),
    events: table("events"),
    inspect: table("inspect"),
    log: table("log"),
  };
}

/** All settings of a table. */
function tableOf<Table extends string>(name: Table, read: ValueReader): TableValues<Table> {
  const keys = SETTING_KEYS.filter((key) => key.startsWith(`${name}.`));
  const values = keys.map((key) => [nameOf(key.slice(name.length + 1), settingOf(key)), read(key)]);
  // Names and values are made by the rules that their types are made by.
  return Object.fromEntries(values) as TableValues<Table>;
}

function storageOf(read: ValueReader): StorageConfig | undefined {
  const [path, url] = [read("storage.path"), read("storage.url")];
  if (path !== undefined) return { path };
  const parsed = url === undefined ? undefined : parsePostgresUrl(url);
  if (parsed === undefined) return undefined;
  const { address, password } = parsed;
  return { postgres: { address, password: () => password, passwordFile: read("storage.password_file") } };
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
