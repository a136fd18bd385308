// The operators' calls about fleets. The books are the reactor's; a check and the log of a worker that lives are asked of the provider.
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { failure, RolloutError } from "../../base/errors.ts";
import { LIMITS } from "../../config/limits.ts";
import { AllocationState, FleetAction } from "../../gen/rollout/v1/fleet_pb.ts";
import type {
  Allocation,
  FleetDetail,
  FleetService,
  SteerFleetRequest,
} from "../../gen/rollout/v1/fleet_pb.ts";
import { peerOf } from "../../transport/caller.ts";
import { describeIdentity } from "../../transport/tls/identity.ts";
import type { FleetPorts } from "../fleet/fleets.ts";
import type { FleetDecision, ShownAllocation, ShownDetail } from "../fleet/operator.ts";
import { fleetSummaryOf } from "../run/fleets.ts";
import { constantOf } from "../turn/operator-message.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";

const UNNAMED_REASON = "an operator said so";

export function fleetService(
  leader: Leader,
  providers: FleetPorts | undefined,
): ServiceImpl<typeof FleetService> {
  const { envelope: coordinator } = leader;
  const fleetsNow = async (): Promise<readonly ShownDetail[]> =>
    (await ask(leader, { kind: "listFleets" })).fleets;
  return {
    async listFleets({ fleet, withOver }) {
      const fleets = await fleetsNow();
      const asked = fleet === "" ? fleets : fleets.filter((each) => each.fleet.name === fleet);
      if (fleet !== "" && asked.length === 0) throw unknown(fleet, fleets);
      return { coordinator, fleets: asked.map((each) => detailOf(each, withOver)) };
    },

    async steerFleet(asked, context) {
      const decision = readDecision(asked);
      const verdict = await ask(leader, { kind: "steerFleet", by: nameOf(context), decision });
      if (verdict.kind === "refused") throw new RolloutError(verdict.code, verdict.params);
      return { coordinator, fleet: fleetSummaryOf(verdict.fleet) };
    },

    async checkFleet({ fleet }) {
      const checked = await providers?.check(fleet);
      if (checked === undefined) throw unknown(fleet, await fleetsNow());
      const words = checked.kind === "ready" ? checked.words : checked.reason;
      return { coordinator, check: { fleet, ready: checked.kind === "ready", words } };
    },

    async getAllocationLog({ allocation: id }) {
      const fleets = await fleetsNow();
      const found = fleets.flatMap(({ allocations }) => allocations).find((each) => each.allocation === id);
      if (found === undefined) throw unknown(id, fleets);
      const log = found.log ?? (await lastWords(providers, found));
      return { coordinator, allocation: allocationOf(found), ...(log !== undefined && { log }) };
    },
  };
}

async function lastWords(
  providers: FleetPorts | undefined,
  { fleet, allocation, ref }: ShownAllocation,
): Promise<string | undefined> {
  const heard = await providers?.ask({ verb: "log", fleet, allocation, ref });
  return heard?.verb === "log" && heard.answer.kind === "log" ? heard.answer.text : undefined;
}

function unknown(fleet: string, fleets: readonly ShownDetail[]): RolloutError {
  const known = fleets.map((each) => each.fleet.name).join(", ");
  return failure("fleet_unknown", { fleet, known: known === "" ? "none" : known });
}

/** By its certificate. */
function nameOf(context: Pick<HandlerContext, "values">): string {
  return describeIdentity(peerOf(context).identity);
}

function readDecision({ target, action, reason, min, max }: SteerFleetRequest): FleetDecision {
  if (Buffer.byteLength(reason) > LIMITS.itemTextBytes)
    return refuse("SteerFleet", `the reason is longer than ${LIMITS.itemTextBytes} bytes`);
  const why = reason === "" ? UNNAMED_REASON : reason;
  switch (action) {
    case FleetAction.PAUSE:
      return { action: "pause", fleet: target, reason: why };
    case FleetAction.RESUME:
      return { action: "resume", fleet: target };
    case FleetAction.END:
      return { action: "end", target, reason: why };
    case FleetAction.SCALE: {
      const scale = { ...(min !== undefined && { min }), ...(max !== undefined && { max }) };
      return {
        action: "scale",
        fleet: target,
        scale: min === undefined && max === undefined ? undefined : scale,
      };
    }
    default:
      return refuse("SteerFleet", "action is none that this version knows");
  }
}

function detailOf(
  { fleet, facts, listTrouble, allocations }: ShownDetail,
  withOver: boolean,
): Filled<FleetDetail> {
  const asked = allocations.filter(({ isOver }) => withOver || !isOver).map(allocationOf);
  return { fleet: fleetSummaryOf(fleet), facts: [...facts], allocations: asked, listTrouble };
}

function allocationOf({
  state,
  log: _log,
  isOver: _isOver,
  ...allocation
}: ShownAllocation): Filled<Allocation> {
  return { ...allocation, state: AllocationState[constantOf(state)] };
}
