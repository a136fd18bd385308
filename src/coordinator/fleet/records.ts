// The rows of fleets: one of each, and one of each of their allocations. A run without fleets has none of them.
import { standingFrom, standingTuple } from "../../runtime/standing.ts";
import type { Standing } from "../../runtime/standing.ts";
import type { RecordType } from "../../storage/codec.ts";
import { ALLOCATIONS_PREFIX, FLEETS_PREFIX, RECORD_KIND } from "../../storage/keys.ts";
import type { Allocation } from "./allocation.ts";
import type { FleetBooks } from "./fleet.ts";

export function fleetKey(name: string): string {
  return `${FLEETS_PREFIX}${name}`;
}

export function allocationKey(id: string): string {
  return `${ALLOCATIONS_PREFIX}${id}`;
}

type FleetRecord = Omit<FleetBooks, "row"> & { readonly standing: Standing };
type AllocationRecord = Pick<Allocation, "fleet" | "slots" | "log" | "request" | "launchedWith"> & {
  readonly standing: Standing;
};

export const fleetRecord: RecordType<FleetRecord> = {
  kind: RECORD_KIND.fleet,
  name: "fleet",
  encode: ({ standing, machineMs, learned, scale, launches, backlog }) => [
    ...[standingTuple(standing), machineMs, [learned.busyMs, learned.ended, learned.joinMs]],
    ...[scale === null ? null : [scale.min, scale.max], [launches.count, launches.sinceMs]],
    [backlog.submitted, backlog.sinceMs],
  ],
  decode: (fields) => {
    const [learned, launches, backlog] = [fields.tuple(2), fields.tuple(4), fields.tuple(5)];
    return {
      ...{ standing: standingFrom(fields.tuple(0)), machineMs: fields.number(1) },
      learned: { busyMs: learned.number(0), ended: learned.number(1), joinMs: learned.number(2) },
      scale: fields.isNull(3) ? null : { min: fields.tuple(3).integer(0), max: fields.tuple(3).integer(1) },
      launches: { count: launches.integer(0), sinceMs: launches.number(1) },
      backlog: { submitted: backlog.integer(0), sinceMs: backlog.number(1) },
    };
  },
};

export const allocationRecord: RecordType<AllocationRecord> = {
  kind: RECORD_KIND.allocation,
  name: "allocation",
  encode: ({ fleet, slots, standing, log, request, launchedWith }) => [
    ...[fleet, slots, standingTuple(standing), log ?? null, request, launchedWith],
  ],
  decode: (fields) => ({
    ...{ fleet: fields.text(0), slots: fields.integer(1), standing: standingFrom(fields.tuple(2)) },
    ...{ log: fields.isNull(3) ? undefined : fields.text(3), request: fields.text(4) },
    launchedWith: fields.text(5),
  }),
};
