// The one table of settings. An entry makes the key in the file, the environment variable, the flag, the line in
// docs/CONFIGURATION.md and the refusal of anything else; there is no second place to add a setting to.
import { CLUSTER_SETTINGS } from "./settings/cluster.ts";
import { KEY_SETTINGS } from "./settings/keys.ts";
import type { Setting } from "./settings/setting.ts";
import { WORKER_SETTINGS } from "./settings/worker.ts";
import type { Present, ValueOf, ValuesOf } from "./value.ts";

/** In the order in which the documentation lists them. */
export const SETTINGS = {
  ...CLUSTER_SETTINGS,
  ...KEY_SETTINGS,
  ...WORKER_SETTINGS,
} as const satisfies Record<string, Setting>;

export type SettingKey = keyof typeof SETTINGS;

/** The value of a setting when it is resolved: milliseconds, bytes, absolute path, …; undefined when it may be missing. */
export type SettingValue<Key extends SettingKey> =
  | ValueOf<(typeof SETTINGS)[Key]>
  | Present<(typeof SETTINGS)[Key]>;

/** The values of a table of the file, by the names that the program has for them: `heartbeat_interval` is `heartbeatIntervalMs`. */
export type TableValues<Table extends string> = ValuesOf<{
  [Key in SettingKey as Key extends `${Table}.${infer Name}` ? Name : never]: (typeof SETTINGS)[Key];
}>;

export const SETTING_KEYS = Object.freeze(Object.keys(SETTINGS)) as readonly SettingKey[];

/** The entry with its flag, without what the compiler knows of this one alone. */
export function settingOf(key: SettingKey): Setting & { readonly flag: string } {
  const setting: Setting = SETTINGS[key];
  return { ...setting, flag: setting.flag ?? key.slice(key.indexOf(".") + 1).replaceAll("_", "-") };
}

/** The tables of the file. */
export const SECTIONS: readonly string[] = Object.freeze([
  ...new Set(SETTING_KEYS.filter((key) => key.includes(".")).map((key) => key.split(".", 1).join())),
]);

export function isSettingKey(text: string): text is SettingKey {
  return Object.hasOwn(SETTINGS, text);
}

/** `liveness.heartbeat_interval` is `ROLLOUT_LIVENESS_HEARTBEAT_INTERVAL` in the environment. */
export function environmentName(key: string): string {
  return `ROLLOUT_${key.replaceAll(".", "_").toUpperCase()}`;
}
