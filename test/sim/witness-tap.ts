// The witness's ear on messages, at the moment when they leave.
import type { DescMethod } from "@bufbuild/protobuf";
import type { WorkerId } from "../../src/base/ids.ts";
import { OperatorService } from "../../src/gen/rollout/v1/run_pb.ts";
import type { SubmitRequest } from "../../src/gen/rollout/v1/run_pb.ts";
import { WorkService } from "../../src/gen/rollout/v1/work_pb.ts";
import type {
  PullResponse,
  ReportResultsRequest,
  ReportResultsResponse,
  Result,
  SessionRequest,
  SessionResponse,
} from "../../src/gen/rollout/v1/work_pb.ts";
import type { SimProcess } from "./process.ts";
import type { Decision } from "./run-witness.ts";
import type { StreamTap, Tap } from "./sim-transport.ts";
import type { Witness } from "./witness.ts";
import type { Workload } from "./workload.ts";

export function witnessTap(
  witness: Witness,
  workload: Workload,
  workerOf: (process: SimProcess) => WorkerId | undefined,
): Tap {
  return {
    onStream: (method, client) => {
      if (method === OperatorService.method.submit) return submission(witness, workload);
      const decision = DECISIONS.get(method);
      if (decision !== undefined) return deciding(witness, decision);
      const worker = workerOf(client);
      if (worker === undefined) return undefined;
      if (method === WorkService.method.session) return session(witness, client, worker);
      if (method === WorkService.method.reportResults) return report(witness, client, worker);
      return method === WorkService.method.pull ? pull(witness, worker) : undefined;
    },
  };
}

const DECISIONS: ReadonlyMap<DescMethod, Decision> = new Map<DescMethod, Decision>([
  [OperatorService.method.pause, "pause"],
  [OperatorService.method.resume, "resume"],
  [OperatorService.method.cancel, "cancel"],
  [OperatorService.method.retry, "retry"],
]);

function deciding(witness: Witness, decision: Decision): StreamTap {
  return {
    onMessage: (direction, message) => {
      if (direction === "up") witness.decisionAsked(decision);
      else witness.decisionAcknowledged(decision);
      return [message];
    },
  };
}

function submission(witness: Witness, { batches }: Workload): StreamTap {
  let number = 0;
  return {
    onMessage: (direction, message) => {
      if (direction === "up") number = Number((message as SubmitRequest).batchNumber);
      else witness.submissionAcknowledged(batches[number - 1]?.map(({ idText }) => idText) ?? []);
      return [message];
    },
  };
}

function session(witness: Witness, client: SimProcess, worker: WorkerId): StreamTap {
  const sent = new Map<number, readonly Result[]>();
  return {
    onMessage: (direction, message) => {
      if (direction === "up") {
        const { frame } = message as SessionRequest;
        if (frame.case === "results") {
          witness.resultsLeave(client, frame.value.results);
          sent.set(Number(frame.value.number), frame.value.results);
        }
      } else {
        const response = message as SessionResponse;
        if (response.frame.case === "assignments")
          witness.assignmentsLeave(worker, epochOf(response), response.frame.value.assignments);
        for (const [number, results] of sent) {
          if (number > Number(response.ackedResults)) continue;
          sent.delete(number);
          witness.resultsAcknowledged(worker, epochOf(response), results);
        }
      }
      return [message];
    },
  };
}

function pull(witness: Witness, worker: WorkerId): StreamTap {
  return {
    onMessage: (direction, message) => {
      if (direction === "up") return [message];
      const response = message as PullResponse;
      const { assignments, recall, drop } = response;
      // One that is empty gives out nothing: so a call is answered that ends with its leader.
      if ((assignments ?? recall ?? drop) !== undefined)
        witness.assignmentsLeave(worker, epochOf(response), assignments?.assignments ?? []);
      return [message];
    },
  };
}

/** A worker that makes calls keeps its results nowhere: they count as stored when they are sent. */
function report(witness: Witness, client: SimProcess, worker: WorkerId): StreamTap {
  let results: readonly Result[] = [];
  return {
    onMessage: (direction, message) => {
      if (direction === "up") {
        ({ results } = message as ReportResultsRequest);
        witness.resultsStored(results);
        witness.resultsLeave(client, results);
      } else witness.resultsAcknowledged(worker, epochOf(message as ReportResultsResponse), results);
      return [message];
    },
  };
}

function epochOf({ coordinator }: Pick<PullResponse, "coordinator">): bigint {
  return coordinator?.coordEpoch ?? -1n;
}
