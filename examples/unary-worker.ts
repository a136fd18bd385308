// A worker that only makes calls: what one in any other language does, in few lines. Nothing of rollout is imported but the
// messages that `buf generate` makes of proto/, and the transport is Connect's own with the certificate of a worker.
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { WorkerState } from "../src/gen/rollout/v1/common_pb.ts";
import { BeatVerdict, HeartbeatService } from "../src/gen/rollout/v1/heartbeat_pb.ts";
import { OutcomeClass, WorkService } from "../src/gen/rollout/v1/work_pb.ts";

export interface UnaryWorkerOptions {
  readonly transport: Transport;
  /** Its id (as its certificate says), and that of this start of it: 16 bytes each, and the latter grow. */
  readonly worker: { readonly workerId: Uint8Array; readonly incarnation: Uint8Array };
  readonly slots: number;
  /** The plugin whose items it executes. */
  readonly plugin: { readonly name: string; readonly version: string };
  readonly execute: (payload: Uint8Array) => Promise<Uint8Array>;
}

/** Works until `signal` aborts or an operator drains it, then says goodbye. Throws what trying again does not help against. */
export async function workByCalls(options: UnaryWorkerOptions, signal: AbortSignal): Promise<void> {
  const { transport, worker, slots, plugin, execute } = options;
  const [heart, work] = [createClient(HeartbeatService, transport), createClient(WorkService, transport)];
  const self = { worker, slots, plugins: [plugin] };
  const leaving = new AbortController();
  let [sequence, callNumber, ackedAssignment] = [0n, 0n, 0n];
  const beat = async (state: WorkerState): Promise<void> => {
    const { ack } = await heart.beat({ beat: { ...self, sequence: ++sequence, state, ackedAssignment } });
    if (ack?.verdict !== BeatVerdict.ACCEPTED) leaving.abort();
  };
  // A coordinator restarts, an answer is lost: the very same call is made again until it is answered.
  const until = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    try {
      return await call();
    } catch (error) {
      if ([Code.InvalidArgument, Code.PermissionDenied].includes(ConnectError.from(error).code)) throw error;
      return pause(100).then(() => until(call));
    }
  };
  await until(() => beat(WorkerState.READY));
  const beating = setInterval(() => void beat(WorkerState.READY).catch(() => undefined), 500);
  while (!leaving.signal.aborted && !signal.aborted) {
    const id = { requestId: randomBytes(16), callNumber: ++callNumber };
    const asked = { worker, ...id, ackedAssignment, credit: slots, waitMs: 1_000 };
    const { assignments: batch, coordinator } = await until(() => work.pull(asked));
    if (batch === undefined) continue;
    const epoch = coordinator?.coordEpoch ?? 0n;
    ackedAssignment = batch.firstNumber + BigInt(batch.assignments.length) - 1n;
    const execution = batch.assignments.map(async ({ attempt, payload }) => {
      const output = await execute(payload);
      const outputDigest = createHash("sha256").update(output).digest();
      const told = { output, outputDigest, outcome: OutcomeClass.SUCCESS, pluginVersion: plugin.version };
      return { ...told, epoch, ...(attempt && { attempt }) };
    });
    const report = { worker, ackedAssignment, results: await Promise.all(execution) };
    await until(() => work.reportResults(report));
  }
  clearInterval(beating);
  await until(() => beat(WorkerState.GONE));
}
