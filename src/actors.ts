/**
 * For files of durable actors, which a manifest names (`backend = "actor"`). A worker lends this module to them, as it lends XState.
 * docs/actors.md tells of it.
 *
 * ```ts
 * import { actor, defineActor } from "rollout/actors";
 * import { sendTo, setup } from "xstate";
 *
 * export const door = defineActor({
 *   machine: setup({}).createMachine({
 *     initial: "closed",
 *     states: {
 *       closed: { on: { open: "ajar" } },
 *       ajar: {
 *         entry: sendTo(actor("bell", "hall"), { type: "ring" }),
 *         after: { 30_000: "closed" },
 *         on: { close: "closed" },
 *       },
 *     },
 *   }),
 * });
 * ```
 */
export type { ActorSnapshot } from "./runtime/actor-state.ts";
export { actor } from "./worker/backends/actor/actor-reference.ts";
export type { ActionContext } from "./worker/backends/actor/actor-work.ts";
export { defineActor } from "./worker/backends/actor/define-actor.ts";
export type {
  ActorDefinition,
  ActorInput,
  ActorMigration,
  ActorType,
  MigratedActor,
} from "./worker/backends/actor/define-actor.ts";
