// Coordinators for a terminal.
import type { CoordinatorSummary } from "../../client/coordinators.ts";
import { momentText } from "./quantities.ts";
import { renderTable } from "./table.ts";

/** The table; empty for one coordinator, which the rest speaks of. */
export function coordinatorsText(coordinators: readonly CoordinatorSummary[], wallMs: number): string {
  if (coordinators.length < 2) return "";
  return renderTable<CoordinatorSummary>(
    [
      { title: "coordinator", value: ({ address, incarnation }) => address || incarnation },
      { title: "role", value: ({ role, present }) => (present ? role : "away") },
      { title: "leads since", value: ({ electedAtMs }) => agoText(electedAtMs, wallMs) },
      { title: "epoch", value: ({ epoch }) => String(epoch ?? "-"), align: "right" },
      { title: "weight", value: ({ weight }) => String(weight), align: "right" },
      { title: "snapshot", value: ({ snapshotNumber }) => String(snapshotNumber ?? "-"), align: "right" },
      { title: "rehearsed", value: (each) => rehearsalText(each, wallMs) },
    ],
    coordinators,
  );
}

function agoText(atMs: number | undefined, wallMs: number): string {
  return atMs === undefined ? "-" : momentText(atMs, wallMs);
}

function rehearsalText({ rehearsalMs, rehearsedAtMs }: CoordinatorSummary, wallMs: number): string {
  if (rehearsalMs === undefined || rehearsedAtMs === undefined) return "-";
  return `in ${rehearsalMs} ms, ${momentText(rehearsedAtMs, wallMs)}`;
}
