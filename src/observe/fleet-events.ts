// The events of fleets; see events.ts. Each says an act that an operator can see, and is said once for it.
import { number, of, text } from "./event-row.ts";
import type { EventRow } from "./event-row.ts";

const FLEET = text("the fleet");
const ALLOCATION = text("the allocation, whose id is also its worker's");
const REASON = text("why, in words");

export const FLEET_EVENTS = {
  fleet_scaled: {
    level: "info",
    doc: "A fleet wants another number of workers, and starts or ends some.",
    fields: {
      fleet: FLEET,
      want: number("how many it wants"),
      wanted_before: number("how many it wanted before"),
      there: number("how many are there or were asked for"),
    },
  },
  fleet_halted: {
    level: "warn",
    doc: "Starts of a fleet have failed again and again: it starts nothing until somebody lets it go on.",
    fields: { fleet: FLEET, reason: REASON },
  },
  fleet_spent: {
    level: "warn",
    doc: "The budget of a fleet is used up, or its time is over: its workers drain.",
    fields: { fleet: FLEET, reason: REASON },
  },
  allocation_launched: {
    level: "info",
    doc: "A worker is asked for.",
    fields: { fleet: FLEET, allocation: ALLOCATION },
  },
  allocation_joined: {
    level: "info",
    doc: "The worker of an allocation has joined.",
    fields: { fleet: FLEET, allocation: ALLOCATION, took_ms: number("from when it was asked for") },
  },
  allocation_ended: {
    level: "info",
    doc: "An allocation is over: its machine is not there any more.",
    fields: {
      fleet: FLEET,
      allocation: ALLOCATION,
      outcome: text(
        "`ended`: it was asked to; `finished`: its worker left by itself; `preempted`: its machine was taken away; `lost`",
      ),
      cause: text("why it was to end; empty where nobody had asked"),
      ran_ms: number("how long its machine was there"),
    },
  },
  allocation_failed: {
    level: "warn",
    doc: "A worker that was asked for has not started.",
    fields: { fleet: FLEET, allocation: ALLOCATION, reason: REASON },
  },
  allocation_stuck: {
    level: "warn",
    doc: "The provider was told to end an allocation again and again, and still has it. It goes on being told.",
    fields: { fleet: FLEET, allocation: ALLOCATION, stops: number("how often") },
  },
  allocation_orphan: {
    level: "warn",
    doc: "The provider has a machine of this run that no row explains, or that is over by its row.",
    fields: {
      fleet: FLEET,
      allocation: ALLOCATION,
      adopted: of<boolean>("whether it is wanted and goes on; else it is ended"),
    },
  },
} satisfies Record<string, EventRow>;
