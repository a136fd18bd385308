// Flags made from the table of settings, so that a setting is named the same everywhere.
import { Flags } from "@oclif/core";
import type { Interfaces } from "@oclif/core";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { SETTING_KEYS, settingOf } from "../config/schema.ts";
import type { ConfigRole, Setting } from "../config/schema.ts";
import { SETTINGS_GROUP } from "./help.ts";

type TextFlag = Interfaces.OptionFlag<string | undefined>;

/** `--config`, and a flag for each setting that matters to the role's commands. Values are checked with the file's. */
export function configFlags(role: ConfigRole): { config: TextFlag } & Record<string, TextFlag> {
  const flags: Record<string, TextFlag> = {};
  for (const key of SETTING_KEYS) {
    const setting = settingOf(key);
    if (!setting.roles.includes(role)) continue;
    flags[setting.flag] = Flags.string({
      summary: setting.doc,
      helpGroup: SETTINGS_GROUP,
      helpValue: HELP_VALUE[setting.kind],
    });
  }
  const config = Flags.string({
    char: "c",
    summary: `The configuration file; without it ./${CONFIG_FILE_NAME} is read.`,
    helpValue: "FILE",
  });
  return { ...flags, config };
}

const HELP_VALUE: Readonly<Record<Setting["kind"], string>> = {
  address: "HOST:PORT",
  choice: "WORD",
  duration: "DURATION",
  integer: "N",
  list: "A,B",
  path: "PATH",
  size: "SIZE",
  ulid: "ULID",
};
