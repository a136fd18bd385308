// Flags made from the table of settings, so that a setting is named the same everywhere.
import type { Interfaces } from "@oclif/core";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { SETTING_KEYS, settingOf } from "../config/schema.ts";
import type { SettingKey } from "../config/schema.ts";
import type { ConfigRole, Setting } from "../config/settings/setting.ts";
import { SETTINGS_GROUP } from "./help.ts";
import { Flags } from "./oclif.ts";

/** Named, so that declarations of commands can name it too. */
export interface TextFlag extends Interfaces.OptionFlag<string | undefined> {
  readonly type: "option";
}

/** `--config`, and a flag for each setting that matters to the role's commands. Values are checked with the file's. */
export function configFlags(role: ConfigRole): { config: TextFlag } & Record<string, TextFlag> {
  return configFlagsFor(SETTING_KEYS.filter((key) => settingOf(key).roles.includes(role)));
}

/** `--config`, and a flag for each of these settings. */
export function configFlagsFor(keys: readonly SettingKey[]): { config: TextFlag } & Record<string, TextFlag> {
  const config = Flags.string({
    char: "c",
    summary: `The configuration file, or its directory; without it ./${CONFIG_FILE_NAME} is read.`,
    helpValue: "FILE",
  });
  return { ...settingFlags(keys), config };
}

/** A flag for each of these settings. */
export function settingFlags(keys: readonly SettingKey[]): Record<string, TextFlag> {
  // Nobody but the settings' own rules reads its value, and they take whatever there is.
  return Object.fromEntries(
    keys.map(settingOf).map((setting) => [setting.flag, flagOf(setting) as TextFlag]),
  );
}

/** As the parser shows its own defaults. A flag has none: the file's value counts before it. */
function defaultOf(setting: Setting): string {
  const value = "default" in setting ? String(setting.default) : setting.derived;
  return value === undefined || value === "" ? "" : `[default: ${value.replaceAll("`", "")}] `;
}

function flagOf(setting: Setting): unknown {
  const about =
    setting.brief === undefined
      ? { summary: `${defaultOf(setting)}${setting.doc}`, helpGroup: SETTINGS_GROUP }
      : { summary: `${defaultOf(setting)}${setting.brief}` };
  if (setting.kind === "boolean") return Flags.boolean(about);
  if (setting.kind === "addresses")
    return Flags.string({
      ...about,
      multiple: true,
      multipleNonGreedy: true,
      helpValue: HELP_VALUE.addresses,
    });
  // A path may have a comma: each file is named by a flag of its own.
  if (setting.kind === "list" && setting.of === "path")
    return Flags.string({ ...about, multiple: true, multipleNonGreedy: true, helpValue: "FILE" });
  return Flags.string({ ...about, helpValue: HELP_VALUE[setting.kind] });
}

const HELP_VALUE: Readonly<Record<Exclude<Setting["kind"], "boolean">, string>> = {
  address: "HOST:PORT",
  addresses: "HOST:PORT",
  choice: "WORD",
  duration: "DURATION",
  failures: "N|N%",
  integer: "N",
  list: "A,B",
  path: "PATH",
  place: "DIR|URL",
  postgres: "URL",
  websocket: "URL",
  size: "SIZE",
  ulid: "ULID",
};
