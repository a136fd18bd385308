// The one table of settings. An entry makes the key in the file, the environment variable, the flag, the line in
// docs/CONFIGURATION.md and the refusal of anything else; there is no second place to add a setting to.
import { CLUSTER_SETTINGS } from "./settings/cluster.ts";
import { PROCESS_SETTINGS } from "./settings/process.ts";
import { RUN_SETTINGS } from "./settings/run.ts";
import type { Setting } from "./settings/setting.ts";
import { WORKER_SETTINGS } from "./settings/worker.ts";

/** In the order in which the documentation lists them. */
export const SETTINGS = {
  ...CLUSTER_SETTINGS,
  ...RUN_SETTINGS,
  ...WORKER_SETTINGS,
  ...PROCESS_SETTINGS,
} as const satisfies Record<string, Setting>;

export type SettingKey = keyof typeof SETTINGS;

type ValueOf<Row extends Setting> = Row extends { readonly kind: "duration" | "size" | "integer" }
  ? number
  : Row extends { readonly kind: "boolean" }
    ? boolean
    : Row extends { readonly kind: "list" }
      ? readonly string[]
      : Row extends { readonly choices: readonly (infer Choice)[] }
        ? Choice
        : string;

type HasDefault<Key extends SettingKey> = (typeof SETTINGS)[Key] extends { readonly default: unknown }
  ? true
  : false;

/** The value of a setting when it is resolved: milliseconds, bytes, absolute path, …; undefined when it may be missing. */
export type SettingValue<Key extends SettingKey> =
  ValueOf<(typeof SETTINGS)[Key]> | (HasDefault<Key> extends true ? never : undefined);

export const SETTING_KEYS = Object.freeze(Object.keys(SETTINGS)) as readonly SettingKey[];

/** The entry, without what the compiler knows of this one alone. */
export function settingOf(key: SettingKey): Setting {
  return SETTINGS[key];
}

/** The tables of the file. */
export const SECTIONS: readonly string[] = Object.freeze([
  ...new Set(SETTING_KEYS.filter((key) => key.includes(".")).map((key) => key.split(".", 1).join())),
]);

export function isSettingKey(text: string): text is SettingKey {
  return Object.hasOwn(SETTINGS, text);
}
