// An entry of the table of settings, and the roles that read it.
import type { ValueRule } from "../value.ts";

/** A reader of the configuration. Roles require different settings, and allow the same. */
export type ConfigRole = "coordinator" | "worker" | "operator";

interface SettingBase {
  /** One sentence. */
  readonly doc: string;
  /** A line for the help of commands, where people set it every day. The others stand under `rollout help settings`. */
  readonly brief?: string;
  /** The flag without its dashes; the name in its table unless said. */
  readonly flag?: string;
  /** Roles whose commands all take the flag; some commands take flags of their own besides. */
  readonly roles: readonly ConfigRole[];
  /** Roles that cannot start without it. */
  readonly requiredFor?: readonly ConfigRole[];
  /** Another setting that takes its place: one of both is required, and not both may be set. */
  readonly unless?: string;
  /** How a default that is no constant is found, in words. */
  readonly derived?: string;
}

export type Setting = SettingBase & ValueRule;

export const everybody = ["coordinator", "worker", "operator"] as const satisfies readonly ConfigRole[];
export const members = ["coordinator", "worker"] as const satisfies readonly ConfigRole[];
export const coordinator = ["coordinator"] as const satisfies readonly ConfigRole[];
export const worker = ["worker"] as const satisfies readonly ConfigRole[];
export const clients = ["worker", "operator"] as const satisfies readonly ConfigRole[];
