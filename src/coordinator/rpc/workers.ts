// Workers as operators see them, one of them asked to leave, and certificates made good for nothing.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import { parseUlidBytes } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import type { RunService } from "../../gen/rollout/v1/run_pb.ts";
import type { RevocationVerdict } from "../turn/input.ts";
import type { WorkerDetail, WorkerListing } from "../turn/worker-view.ts";
import type { Leader } from "./leader.ts";
import { ask } from "./leader.ts";
import { writeWorker } from "./messages.ts";
import { refuse } from "./refusals.ts";

const PAGE_MAX = 1_000;

export function workers(
  leader: Leader,
): Pick<ServiceImpl<typeof RunService>, "listWorkers" | "getWorker" | "drainWorker" | "revoke"> {
  const { envelope: coordinator } = leader;
  return {
    async listWorkers({ afterWorkerId, limit }) {
      const after = afterWorkerId.length === 0 ? "" : parseUlidBytes<WorkerId>(afterWorkerId);
      if (after === undefined) return refuse("ListWorkers", "after_worker_id is not 16 bytes");
      const { workers: page, more } = await ask<WorkerListing>(leader, (answer) => ({
        kind: "listWorkers",
        after,
        limit: limit === 0 ? PAGE_MAX : Math.min(limit, PAGE_MAX),
        answer,
      }));
      return { coordinator, workers: page.map(writeWorker), more };
    },

    async getWorker({ workerId: bytes }) {
      const workerId = readWorkerId("GetWorker", bytes);
      const detail = await ask<WorkerDetail | undefined>(leader, (answer) => ({
        kind: "getWorker",
        workerId,
        answer,
      }));
      if (detail === undefined) throw failure("worker_unknown", { worker: workerId });
      const { worker, held, credit, hasSession, failuresInRow } = detail;
      return {
        ...{ coordinator, info: writeWorker(worker), hasSession, failuresInRow },
        credit: BigInt(credit),
        held: held.map(({ id, attempt }) => ({ itemId: id, attempt })),
      };
    },

    async drainWorker({ workerId: bytes }) {
      const workerId = readWorkerId("DrainWorker", bytes);
      const isKnown = await ask<boolean>(leader, (answer) => ({ kind: "drainWorker", workerId, answer }));
      if (!isKnown) throw failure("worker_unknown", { worker: workerId });
      return { coordinator };
    },

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

function readWorkerId(method: string, bytes: Uint8Array): WorkerId {
  return parseUlidBytes<WorkerId>(bytes) ?? refuse(method, "worker_id is not 16 bytes");
}
