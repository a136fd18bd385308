// The configuration of a local run, which its processes and every other command read: the settings that it takes, and how they get
// there. Keeps true: places are its own business, so that a variable or a file that was meant for another cluster has no part in it; whoever
// reads it at any time finds an address at which its coordinator is, or will be.
import { dirname, resolve } from "node:path";
import { stringify } from "smol-toml";
import { findFreePort, isLoopback, parseAddress } from "../../base/address.ts";
import { systemClock } from "../../base/clock.ts";
import { RolloutError } from "../../base/errors.ts";
import { newUlid } from "../../base/ids.ts";
import type { RunId } from "../../base/ids.ts";
import { systemRandom } from "../../base/random.ts";
import { FLEET_LIST } from "../../config/fleet-fields.ts";
import { CONFIG_FILE_NAME } from "../../config/load.ts";
import { resolveConfig } from "../../config/resolve.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import { SETTING_KEYS, settingOf, environmentName } from "../../config/schema.ts";
import type { SettingKey } from "../../config/schema.ts";
import type { ConfigRole } from "../../config/settings/setting.ts";
import { parseConfigText } from "../../config/toml-file.ts";
import { TOPICS } from "../../observe/events.ts";
import type { Program } from "./kept-process.ts";
import { DATABASE, PLUGINS, STATE } from "./run-record.ts";
import type { RunDirectory } from "./run-directory.ts";

const LISTEN_ADDR = "transport.listen_addr";
const PLACES: readonly SettingKey[] = [
  "run_id",
  "storage.path",
  "storage.url",
  "storage.password_file",
  "worker.state_dir",
  "worker.coordinator_addr",
  "worker.enrolment",
  "worker.plugins",
  "worker.plugin_dir",
  "worker.monitor_addr",
];
/** Its network is this machine, and its coordinator shares the database with no other: there is no lease to time, and nobody to outweigh. */
const WITHOUT_CHOICE = ["transport.", "coordinator."];

export const LOCAL_SETTINGS: readonly SettingKey[] = SETTING_KEYS.filter(
  (key) =>
    !PLACES.includes(key) &&
    !WITHOUT_CHOICE.some((section) => key.startsWith(section)) &&
    settingOf(key).roles.some(isMember),
);

function isMember(role: ConfigRole): boolean {
  return role === "coordinator" || role === "worker";
}

/** Refuses settings before anything is started: throws what `resolveConfig` throws. Resolves with what they come to. */
export function checkSettings(flags: Readonly<Record<string, unknown>>, program: Program): ClientConfig {
  const text = localConfigText(newUlid<RunId>(systemClock, systemRandom), "127.0.0.1:1", undefined);
  return resolveConfig("coordinator", {
    file: { path: resolve(program.workingDirectory, "rollout run"), text },
    environment: localEnvironment(program.environment),
    // A plugin's manifest is read by who names it.
    flags: { ...flags, plugin: undefined },
    workingDirectory: program.workingDirectory,
    topics: TOPICS,
  });
}

/** Those of the variables that a process of a local run may have. */
export function localEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const foreign = SETTING_KEYS.filter((key) => !LOCAL_SETTINGS.includes(key)).map(environmentName);
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !foreign.includes(name)));
}

/** Those of the flags that processes of that role take, as words of a command line. */
export function settingWords(role: ConfigRole, flags: Readonly<Record<string, unknown>>): string[] {
  return LOCAL_SETTINGS.map(settingOf).flatMap(({ roles, flag }) => {
    const value = flags[flag];
    if (!roles.includes(role)) return [];
    if (value === true) return [`--${flag}`];
    return typeof value === "string" ? [`--${flag}=${value}`] : [];
  });
}

/** A setting as somebody gave it: as text, or true. */
export interface GivenSetting {
  readonly key: SettingKey;
  readonly value: string | true;
}

/** Values of flags, or else of variables, so that they may stand in a file in another directory. They were checked before. */
export function givenSettings(
  flags: Readonly<Record<string, unknown>>,
  environment: NodeJS.ProcessEnv,
  workingDirectory: string,
): GivenSetting[] {
  return LOCAL_SETTINGS.flatMap((key): GivenSetting[] => {
    const { flag, kind } = settingOf(key);
    const variable = environment[environmentName(key)];
    const value = flags[flag] ?? (variable === "" ? undefined : variable);
    if (value === true) return [{ key, value }];
    if (typeof value !== "string") return [];
    return [{ key, value: kind === "path" ? resolve(workingDirectory, value) : value }];
  });
}

/** Those for workers on other machines, as words of a command line. Paths are of this machine, and slots are a host's own. */
export function hostWords(
  flags: Readonly<Record<string, unknown>>,
  environment: NodeJS.ProcessEnv,
  workingDirectory: string,
): string[] {
  return givenSettings(flags, environment, workingDirectory).flatMap(({ key, value }) => {
    const { roles, flag, kind } = settingOf(key);
    if (!roles.includes("worker") || kind === "path" || key === "worker.slots") return [];
    return [value === true ? `--${flag}` : `--${flag}=${value}`];
  });
}

/** The configuration that coordinator, workers and every other command read. `settings` are of docs/CONFIGURATION.md, by their keys. */
export function localConfigText(
  runId: RunId,
  listenAddr: string,
  manifest: string | undefined,
  settings: readonly GivenSetting[] = [],
  fleets: readonly Readonly<Record<string, unknown>>[] = [],
): string {
  const tables: Record<string, Record<string, unknown>> = {
    storage: { path: `./${DATABASE}` },
    transport: { listen_addr: listenAddr, tls_dir: "./tls" },
    worker: {
      state_dir: `./${STATE}`,
      plugins: manifest === undefined ? [] : [manifest],
      plugin_dir: `./${PLUGINS}`,
    },
  };
  for (const { key, value } of settings) {
    const [table = "", name = ""] = key.split(".");
    (tables[table] ??= {})[name] = value;
  }
  const about =
    "# Written by `rollout run`, anew each time. Other commands take it, or its directory, by --config.";
  const fleet = fleets.length === 0 ? {} : { [FLEET_LIST]: fleets };
  return `${about}\n${stringify({ run_id: runId, ...tables, ...fleet })}\n`;
}

/** The configuration of such a text: nothing else counts. */
export function readConfigText(path: string, text: string): ClientConfig {
  return resolveConfig("coordinator", {
    file: { path, text },
    ...{ environment: {}, flags: {}, workingDirectory: dirname(path), topics: TOPICS },
  });
}

/** For the next coordinator: the one that the last coordinator there had; without one, an address at which nothing listens now. */
export async function namedAddress(directory: Pick<RunDirectory, "read">): Promise<string> {
  const text = (await directory.read(CONFIG_FILE_NAME)) ?? "";
  return addressIn(text) ?? `127.0.0.1:${await findFreePort()}`;
}

/** Undefined where the text has none, one that says any port, or one that other machines reach. A text that cannot be read is written anew by its caller. */
function addressIn(text: string): string | undefined {
  try {
    const settings = parseConfigText(CONFIG_FILE_NAME, text, (name) => LISTEN_ADDR.startsWith(`${name}.`));
    const value = settings.find(({ key }) => key === LISTEN_ADDR)?.value;
    if (typeof value !== "string") return undefined;
    const address = parseAddress(value);
    return address !== undefined && address.port > 0 && isLoopback(address.host) ? value : undefined;
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return undefined;
  }
}
