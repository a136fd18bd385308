// Fleets of a run, as the library gives them.
import type { Client } from "@connectrpc/connect";
import type {
  Allocation as AllocationWire,
  FleetCheck as FleetCheckWire,
  FleetDetail as FleetDetailWire,
  FleetService,
  FleetSummary as FleetSummaryWire,
} from "../gen/rollout/v1/fleet_pb.ts";
import {
  AllocationSchema,
  FleetAction,
  FleetCheckSchema,
  FleetDetailSchema,
  FleetSummarySchema,
} from "../gen/rollout/v1/fleet_pb.ts";
import { plainOf, told } from "./operator-message.ts";
import type { Plain } from "./operator-message.ts";

export interface FleetSummary extends Plain<FleetSummaryWire> {
  readonly state: "active" | "cooling" | "halted" | "paused" | "spent" | "unknown";
}

export interface Allocation extends Plain<AllocationWire> {
  readonly state: "requested" | "queued" | "booting" | "joined" | "ending" | "failed" | "gone" | "unknown";
}

export interface FleetDetail extends Plain<FleetDetailWire> {
  readonly fleet: FleetSummary;
  readonly allocations: readonly Allocation[];
}

export type FleetCheck = Plain<FleetCheckWire>;

export interface AllocationLog {
  readonly allocation: Allocation;
  /** Undefined where nothing is known. */
  readonly log: string | undefined;
}

export type FleetSteering = "pause" | "resume" | "scale" | "end";

type Calls = Client<typeof FleetService>;

const ACTIONS: Readonly<Record<FleetSteering, FleetAction>> = {
  pause: FleetAction.PAUSE,
  resume: FleetAction.RESUME,
  scale: FleetAction.SCALE,
  end: FleetAction.END,
};

/** In the order of the configuration. Throws the transport's rows, and fleet_unknown where one is named. */
export async function listFleets(
  calls: Calls,
  { fleet = "", withOver }: { readonly fleet?: string | undefined; readonly withOver: boolean },
): Promise<FleetDetail[]> {
  const { fleets } = await calls.listFleets({ fleet, withOver });
  return fleets.map((each) => plainOf(FleetDetailSchema, each) as FleetDetail);
}

/** Resolves when it is on the coordinator's disk. Throws the transport's rows, fleet_unknown and fleet_min_over_max. */
export async function steerFleet(
  calls: Calls,
  steering: FleetSteering,
  asked: {
    readonly target: string;
    readonly reason?: string;
    readonly min?: number | undefined;
    readonly max?: number | undefined;
  },
): Promise<FleetSummary> {
  const { target, reason = "", min, max } = asked;
  const limits = { ...(min !== undefined && { min }), ...(max !== undefined && { max }) };
  const { fleet } = await calls.steerFleet({ target, reason, action: ACTIONS[steering], ...limits });
  return plainOf(FleetSummarySchema, told(fleet)) as FleetSummary;
}

/** Throws the transport's rows, and fleet_unknown. */
export async function checkFleet(calls: Calls, fleet: string): Promise<FleetCheck> {
  return plainOf(FleetCheckSchema, told((await calls.checkFleet({ fleet })).check));
}

/** Throws the transport's rows, and fleet_unknown. */
export async function allocationLog(calls: Calls, allocation: string): Promise<AllocationLog> {
  const found = await calls.getAllocationLog({ allocation });
  return { allocation: plainOf(AllocationSchema, told(found.allocation)) as Allocation, log: found.log };
}
