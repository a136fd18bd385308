// A worker in few lines, of nothing but the generated code: what somebody else's worker would be. It executes an item by
// turning its payload to capitals.
import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import { HeartbeatService } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { OutcomeClass, WorkService } from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { AssignmentBatch, SessionRequestSchema } from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { CallingIdentity } from "./calling-worker.ts";

export interface SessionClientOptions extends CallingIdentity {
  readonly room: number;
}

type Request = Exclude<MessageInitShape<typeof SessionRequestSchema>, { readonly $typeName: string }>;

/** Works until the stream ends or `signal` aborts. */
export async function workInSession(
  { transport, worker, room }: SessionClientOptions,
  signal: AbortSignal,
): Promise<void> {
  const beat = { worker, sequence: 1n, state: WorkerState.READY, load: 0, slots: room };
  await createClient(HeartbeatService, transport).beat({ beat });

  const outgoing: Request["frame"][] = [{ case: "hello", value: { held: [] } }];
  let [received, batches] = [0n, 0n];
  let wake = (): void => undefined;
  const say = (frame: Request["frame"]): void => void (outgoing.push(frame), wake());
  async function* requests(): AsyncGenerator<Request> {
    while (!signal.aborted) {
      const frame = outgoing.shift();
      if (frame !== undefined) yield { worker, ackedAssignment: received, frame };
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  }
  signal.addEventListener("abort", () => wake());
  const execute = ({ firstNumber, assignments }: AssignmentBatch, epoch: bigint): void => {
    received = firstNumber + BigInt(assignments.length) - 1n;
    const results = assignments.map(({ attempt, payload }) => {
      const output = Buffer.from(Buffer.from(payload).toString().toUpperCase());
      const outputDigest = createHash("sha256").update(output).digest();
      return { ...(attempt && { attempt }), epoch, outcome: OutcomeClass.SUCCESS, output, outputDigest };
    });
    say({ case: "results", value: { number: ++batches, results } });
    say({ case: "credit", value: { more: results.length } });
  };
  for await (const { frame, coordinator } of createClient(WorkService, transport).session(requests())) {
    if (frame.case === "verdict") say({ case: "credit", value: { more: room } });
    if (frame.case === "assignments") execute(frame.value, coordinator?.coordEpoch ?? 0n);
  }
}
