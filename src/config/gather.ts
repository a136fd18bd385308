// Values from the file, the environment and the flags, by setting: each later source wins, each value is checked where it
// stands, and whatever is unknown is refused with the nearest known name.
import { dirname } from "node:path";
import { assert } from "../base/assert.ts";
import { failure } from "../base/errors.ts";
import { printable, REDACTED, redactSecrets } from "../base/safe-text.ts";
import { FLEET_LIST, isFleetSetting } from "./fleet-fields.ts";
import { nearestName } from "./nearest.ts";
import { SECTIONS, SETTING_KEYS, isSettingKey, settingOf, environmentName } from "./schema.ts";
import type { SettingKey } from "./schema.ts";
import { parseConfigText } from "./toml-file.ts";
import type { FileSetting } from "./toml-file.ts";
import { describeAllowed, parseValue } from "./value.ts";
import type { ParsedValue } from "./value.ts";

export interface ConfigSources {
  /** Absolute path of the file, and what is in it. */
  readonly file: { readonly path: string; readonly text: string };
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** By the flag's name; those that were not given are undefined. Other flags may be there too. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** The directory for relative paths in variables and flags; those in the file are relative to the file. */
  readonly workingDirectory: string;
  /** The topics that `events.hide` may name. */
  readonly topics: readonly string[];
  /** Values of the enrolment bundle that settings have too: they count where no setting does. */
  readonly bundle?: { readonly runId: string; readonly coordinatorAddr: readonly string[] } | undefined;
}

interface Given {
  readonly value: ParsedValue;
  /** Where it was said: `file:line`, a variable, a flag. Undefined: it is the default. */
  readonly source: string | undefined;
}

export type GivenSettings = Map<SettingKey, Given>;

const VALUE_MAX_CHARS = 80;

/** Every setting that is given or has a constant default. Throws the refusals of single settings. */
export function gatherSettings(sources: ConfigSources): GivenSettings {
  const given: GivenSettings = new Map();
  takeFile(given, sources);
  takeEnvironment(given, sources);
  takeFlags(given, sources);
  takeBundle(given, sources);
  takeDefaults(given, sources);
  return given;
}

/** The tables of fleets in the file, which are no settings. */
export function fleetSettings({ file: { path, text } }: Pick<ConfigSources, "file">): FileSetting[] {
  return parseFile(path, text).filter(isFleetSetting);
}

function parseFile(path: string, text: string): FileSetting[] {
  const isList = (name: string): boolean => name === FLEET_LIST;
  return parseConfigText(path, text, (name) => SECTIONS.includes(name), isList);
}

function takeFile(given: GivenSettings, sources: ConfigSources): void {
  const { path, text } = sources.file;
  for (const setting of parseFile(path, text)) {
    const { key, value, source } = setting;
    if (isFleetSetting(setting)) continue;
    if (isSettingKey(key)) {
      give(given, key, value, { source, directory: dirname(path) }, sources);
    } else if (SECTIONS.includes(key)) {
      const allowed = `a table, written [${key}]`;
      throw failure("config_invalid_value", { source, key, value: showValue(value), allowed });
    } else {
      throw failure("config_unknown_key", { source, key: showText(key), suggestion: suggestionFor(key) });
    }
  }
}

function takeEnvironment(given: GivenSettings, sources: ConfigSources): void {
  const keys = new Map(SETTING_KEYS.map((key) => [environmentName(key), key]));
  const prefixes = SECTIONS.map((section) => `ROLLOUT_${section.toUpperCase()}_`);
  for (const [name, value] of Object.entries(sources.environment)) {
    // An empty variable is how a shell says that it is not set.
    if (value === undefined || value === "") continue;
    const key = keys.get(name);
    if (key !== undefined) {
      const source = `environment variable ${name}`;
      give(given, key, value, { source, directory: sources.workingDirectory }, sources);
    } else if (prefixes.some((prefix) => name.startsWith(prefix))) {
      const nearest = nearestName(name, [...keys.keys()]);
      const suggestion =
        replacedVariable(name) ?? (nearest === undefined ? "unset it" : `did you mean ${nearest}?`);
      throw failure("config_unknown_key", { source: "environment", key: showText(name), suggestion });
    }
  }
}

function takeFlags(given: GivenSettings, sources: ConfigSources): void {
  for (const key of SETTING_KEYS) {
    const { flag } = settingOf(key);
    const value = sources.flags[flag];
    if (value === undefined) continue;
    give(given, key, value, { source: `flag --${flag}`, directory: sources.workingDirectory }, sources);
  }
}

/** The bundle that a setting names; undefined when none does. */
export function namedBundle(sources: ConfigSources): string | undefined {
  const file = gatherSettings(sources).get("worker.enrolment")?.value;
  return typeof file === "string" ? file : undefined;
}

function takeBundle(given: GivenSettings, sources: ConfigSources): void {
  const { bundle, workingDirectory: directory } = sources;
  const file = given.get("worker.enrolment")?.value;
  if (bundle === undefined || typeof file !== "string") return;
  const source = `enrolment bundle ${file}`;
  const said = { run_id: bundle.runId, "worker.coordinator_addr": bundle.coordinatorAddr } as const;
  for (const key of ["run_id", "worker.coordinator_addr"] as const) {
    // A coordinator that took any free port did not know it when it made the bundle of its own machine.
    const value = parseValue(settingOf(key), said[key], { directory, topics: sources.topics });
    if (value !== undefined && !given.has(key)) given.set(key, { value, source });
  }
}

function takeDefaults(given: GivenSettings, sources: ConfigSources): void {
  const directory = dirname(sources.file.path);
  for (const key of SETTING_KEYS) {
    const setting = settingOf(key);
    if (given.has(key) || setting.default === undefined) continue;
    const value = parseValue(setting, setting.default, { directory, topics: sources.topics });
    assert(value !== undefined, `the default of ${key} is allowed`);
    given.set(key, { value, source: undefined });
  }
}

function give(
  given: GivenSettings,
  key: SettingKey,
  raw: unknown,
  place: { readonly source: string; readonly directory: string },
  sources: ConfigSources,
): void {
  const setting = settingOf(key);
  const { source, directory } = place;
  const value = parseValue(setting, raw, { directory, topics: sources.topics });
  if (value === undefined) {
    const allowed = describeAllowed(setting, sources.topics);
    // A password or a token may stand in it where none is expected.
    const isSecret = setting.kind === "postgres" || setting.kind === "websocket";
    const shown = isSecret ? REDACTED : showValue(raw);
    throw failure("config_invalid_value", { source, key, value: shown, allowed });
  }
  given.set(key, { value, source });
}

/** Settings of 0.1 that are gone, and the ones that say the same now. */
const REPLACED: ReadonlyMap<string, string> = new Map([
  ["coordinator.lease_renewal", "it is coordinator.heartbeat_interval now"],
  ["coordinator.lease_deadline", "it is four fifths of coordinator.failover_threshold now, which can be set"],
]);

/** A setting of the same name in another table, a setting or table of nearly the same name, or what there is. */
function suggestionFor(key: string): string {
  const replaced = REPLACED.get(key);
  if (replaced !== undefined) return replaced;
  const name = key.slice(key.lastIndexOf(".") + 1);
  const elsewhere = SETTING_KEYS.find((known) => known.endsWith(`.${name}`));
  const tables = SECTIONS.map((section) => `[${section}]`);
  const nearest = elsewhere ?? nearestName(key, SETTING_KEYS) ?? nearestName(`[${key}]`, tables);
  if (nearest !== undefined) return `did you mean ${nearest}?`;
  const [section = ""] = key.split(".", 1);
  const known = SETTING_KEYS.filter((setting) => setting.startsWith(`${section}.`));
  return `known are ${(known.length > 0 ? known : ["run_id", ...tables]).join(", ")}`;
}

function replacedVariable(name: string): string | undefined {
  return [...REPLACED].find(([old]) => environmentName(old) === name)?.[1];
}

/** As a message may show it: short, on one line, and without secrets. */
export function showValue(raw: unknown): string {
  return showText(typeof raw === "number" || typeof raw === "bigint" ? String(raw) : JSON.stringify(raw));
}

/** As a message may show it: short, on one line, and no secret that was pasted in the wrong place. */
function showText(text: string): string {
  const shown = printable(redactSecrets(text));
  return shown.length > VALUE_MAX_CHARS ? `${shown.slice(0, VALUE_MAX_CHARS)}…` : shown;
}
