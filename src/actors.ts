/**
 * For files of durable actors, which a manifest names (`backend = "actor"`). A worker lends this module to them, as it lends XState.
 * docs/actors.md tells of it.
 *
 * ```ts
 * import { defineActor } from "rollout/actors";
 * import { setup } from "xstate";
 *
 * export const door = defineActor({
 *   machine: setup({}).createMachine({
 *     initial: "closed",
 *     states: { closed: { on: { open: "ajar" } }, ajar: { on: { close: "closed" } } },
 *   }),
 * });
 * ```
 */
export type { ActorSnapshot } from "./runtime/actor-state.ts";
export { defineActor } from "./worker/backends/actor/define-actor.ts";
export type {
  ActorDefinition,
  ActorInput,
  ActorMigration,
  ActorType,
} from "./worker/backends/actor/define-actor.ts";
