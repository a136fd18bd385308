// Which settings `rollout run` takes, and how they reach the processes that it starts. Places are its own
// business: a variable or a file that was meant for another cluster has no part in it.
import { resolve } from "node:path";
import { environmentName } from "../../config/environment-name.ts";
import { SETTING_KEYS, settingOf } from "../../config/schema.ts";
import type { SettingKey } from "../../config/schema.ts";
import type { ConfigRole } from "../../config/settings/setting.ts";

const PLACES: readonly SettingKey[] = [
  "run_id",
  "storage.path",
  "worker.state_dir",
  "worker.coordinator_addr",
  "worker.enrolment",
  "worker.plugins",
];

export const LOCAL_SETTINGS: readonly SettingKey[] = SETTING_KEYS.filter(
  (key) => !PLACES.includes(key) && !key.startsWith("transport.") && settingOf(key).roles.some(isMember),
);

function isMember(role: ConfigRole): boolean {
  return role === "coordinator" || role === "worker";
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
