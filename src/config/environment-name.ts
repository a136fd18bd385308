// How a setting is called in the environment.
import type { SettingKey } from "./schema.ts";

/** `liveness.heartbeat_interval` is `ROLLOUT_LIVENESS_HEARTBEAT_INTERVAL` in the environment. */
export function environmentName(key: SettingKey): string {
  return `ROLLOUT_${key.replaceAll(".", "_").toUpperCase()}`;
}
