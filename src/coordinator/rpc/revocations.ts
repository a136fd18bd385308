// Certificates made good for nothing, as operators ask for it.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import { parseUlidBytes } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import type { RunService } from "../../gen/rollout/v1/run_pb.ts";
import type { RevocationVerdict } from "../turn/enrolment-view.ts";
import type { Leader } from "./leader.ts";
import { ask } from "./leader.ts";
import { refuse } from "./refusals.ts";

export function revocations(leader: Leader): Pick<ServiceImpl<typeof RunService>, "revoke"> {
  const { envelope: coordinator } = leader;
  return {
    async revoke({ bearerId: bytes, withWorkers }) {
      const id = parseUlidBytes<WorkerId>(bytes) ?? refuse("Revoke", "bearer_id is not 16 bytes");
      const verdict = await ask<RevocationVerdict>(leader, (answer) => ({
        kind: "revoke",
        id,
        withWorkers,
        answer,
      }));
      if (verdict.kind === "full")
        throw failure("overloaded", { what: "the list of revoked certificates", limit: LIMITS.revocations });
      const { isWorker, enrolled, workersRevoked } = verdict;
      return { coordinator, isWorker, enrolled, workersRevoked };
    },
  };
}
