// Fleets for a terminal: a line for each, why one is as large as it is, and its allocations.
import { printable } from "../../base/safe-text.ts";
import type { Allocation, FleetDetail, FleetSummary } from "../../client/fleets.ts";
import { renderAge } from "./quantities.ts";
import { fleetLine } from "./run-status.ts";
import { renderTable } from "./table.ts";

/** The table, or a sentence when there is none to show. */
export function fleetsText(fleets: readonly FleetSummary[]): string {
  if (fleets.length === 0)
    return "The run has no fleet: a [[fleet]] in rollout.toml of its coordinator makes one.\n";
  return renderTable<FleetSummary>(
    [
      { title: "fleet", value: ({ name }) => name },
      { title: "provider", value: ({ provider }) => provider },
      { title: "state", value: ({ state }) => state },
      { title: "want", value: ({ want }) => String(want), align: "right" },
      { title: "joined", value: ({ joined }) => String(joined), align: "right" },
      { title: "starting", value: ({ starting }) => String(starting), align: "right" },
      { title: "queued", value: ({ queued }) => String(queued), align: "right" },
      { title: "ending", value: ({ ending }) => String(ending), align: "right" },
      { title: "hours", value: ({ machineHours }) => machineHours.toFixed(2), align: "right" },
      { title: "cost", value: ({ cost }) => (cost === undefined ? "-" : cost.toFixed(2)), align: "right" },
      { title: "why", value: ({ reason }) => (reason === "" ? "-" : reason) },
    ],
    fleets,
  );
}

/** The table, or a sentence when there is none to show. */
export function allocationsText(allocations: readonly Allocation[], nowMs: number): string {
  if (allocations.length === 0) return "No worker was asked for.\n";
  return renderTable<Allocation>(
    [
      { title: "allocation", value: ({ allocation }) => allocation },
      { title: "fleet", value: ({ fleet }) => fleet },
      { title: "state", value: ({ state }) => state },
      { title: "asked for", value: ({ askedAtMs }) => renderAge(nowMs - askedAtMs) },
      { title: "ran", value: ({ ranMs }) => `${Math.round(ranMs / 1_000)} s`, align: "right" },
      { title: "ref", value: ({ ref }) => (ref === "" ? "-" : ref) },
      { title: "why", value: ({ reason }) => (reason === "" ? "-" : reason) },
    ],
    allocations,
  );
}

/** The allocation of a worker that a fleet has started. */
export function allocationSentence(
  { fleet, state, ref, reason, askedAtMs }: Allocation,
  nowMs: number,
): string {
  const asked = `asked for ${renderAge(nowMs - askedAtMs)}`;
  const known = [state, asked, ...(ref === "" ? [] : [`ref ${ref}`]), ...(reason === "" ? [] : [reason])];
  return `It is an allocation of fleet ${printable(fleet)}: ${printable(known.join(", "))}.`;
}

/** Why it is as large as it is; ends with a line ending. */
export function fleetText({ fleet, facts }: FleetDetail): string {
  return [fleetLine(fleet), ...facts.map((fact) => `  ${printable(fact)}`)]
    .map((line) => `${line}\n`)
    .join("");
}
