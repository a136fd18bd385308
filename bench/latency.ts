// Latency of dispatch at low load (known-results has that of results): from the moment an operator submits one item to the moment a waiting worker has it, the fsync of
// the submission included. The worker is this process, by a client written against the generated code only.
import { createClient } from "@connectrpc/connect";
import { assert } from "../src/base/assert.ts";
import { AsyncQueue } from "../src/base/async-queue.ts";
import { sleep, systemClock } from "../src/base/clock.ts";
import type { IncarnationId, WorkerId } from "../src/base/ids.ts";
import { newUlid, ulidToBytes } from "../src/base/ids.ts";
import { systemRandom } from "../src/base/random.ts";
import { submitLines } from "../src/client/submit.ts";
import { mockManifest } from "../src/config/manifest.ts";
import { taskOf } from "../src/config/task.ts";
import { WorkerState } from "../src/gen/rollout/v1/common_pb.ts";
import { HeartbeatService } from "../src/gen/rollout/v1/heartbeat_pb.ts";
import { WorkService } from "../src/gen/rollout/v1/work_pb.ts";
import type { SessionResponse } from "../src/gen/rollout/v1/work_pb.ts";
import { silentLogger } from "../src/observe/log.ts";
import type { Client } from "../src/transport/client.ts";
import { openClient } from "../src/transport/client.ts";
import { openAuthority } from "../src/transport/tls/authority.ts";
import { loadCredentials } from "../src/transport/tls/credential-files.ts";
import { operatorFiles } from "../src/transport/tls/host-credentials.ts";
import { knownResults } from "./known-results.ts";
import type { Bench } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { MeasuredCoordinator } from "./support/measured-coordinator.ts";

const SAMPLES = 400;
const PAUSE_MS = 10;
const CREDIT = 10_000;

export const latency: Bench = {
  name: "latency",
  async run(note) {
    const coordinator = await MeasuredCoordinator.start({ watchesLag: false });
    const [worker, operator] = [await openWorker(coordinator), await openOperator(coordinator)];
    try {
      const arrivals = await listen(worker.client, worker.workerId);
      const measured: number[] = [];
      const task = taskOf(mockManifest());
      const options = { task, priority: 0, clock: systemClock, random: systemRandom };
      for (let at = 0; at < SAMPLES; at++) {
        const sentMs = systemClock.monotonicMs();
        const submitted = submitLines(operator.transport, one(`{"n":${at}}`), options);
        const arrival = await arrivals.next();
        assert(arrival.done !== true, "the session is alive");
        measured.push(arrival.value - sentMs);
        await submitted;
        await sleep(systemClock, PAUSE_MS);
      }
      measured.sort((left, right) => left - right);
      const percentile = (share: number): number =>
        round(measured[Math.floor(share * measured.length)] ?? NaN, 2);
      note(`p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms`);
      return [
        ...(await knownResults(note)),
        { name: "submit to assignment, p50", value: percentile(0.5), unit: "ms" },
        { name: "submit to assignment, p99", value: percentile(0.99), unit: "ms" },
      ];
    } finally {
      worker.client.close();
      operator.close();
      await coordinator.stop();
    }
  },
};

async function openWorker({
  runId,
  address,
  tlsDir,
}: MeasuredCoordinator): Promise<{ client: Client; workerId: WorkerId }> {
  const [clock, random] = [systemClock, systemRandom];
  const { authority } = await openAuthority({ tlsDir, clock, random });
  const workerId = newUlid<WorkerId>(clock, random);
  const credentials = await authority.issue({ identity: { runId, role: "worker", id: workerId } });
  return { client: openClient({ address, runId, credentials, clock, log: silentLogger }), workerId };
}

async function openOperator({ runId, address, tlsDir }: MeasuredCoordinator): Promise<Client> {
  const loaded = await loadCredentials(operatorFiles(tlsDir), { runId, roles: ["operator"] }, systemClock);
  return openClient({
    address,
    runId,
    credentials: loaded.credentials,
    clock: systemClock,
    log: silentLogger,
  });
}

/** Opens a session with plenty of credit; yields the time at which each item arrives. */
async function listen({ transport }: Client, id: WorkerId): Promise<AsyncGenerator<number>> {
  const incarnation = ulidToBytes(newUlid<IncarnationId>(systemClock, systemRandom));
  const worker = { workerId: ulidToBytes(id), incarnation };
  const heart = createClient(HeartbeatService, transport);
  const beats = new AsyncQueue<object>(8);
  let sequence = 0n;
  const { name, version } = mockManifest();
  const plugins = [{ name, version }];
  const beat = (): void => {
    const said = { worker, sequence: ++sequence, state: WorkerState.READY, load: 0, slots: 1, plugins };
    beats.push({ beat: said });
    systemClock.after(400, beat, { background: true });
  };
  const acks = heart.beatStream(beats)[Symbol.asyncIterator]();
  beat();
  await acks.next();
  void drain(acks);
  const requests = new AsyncQueue<object>(8);
  requests.push({ worker, frame: { case: "hello", value: { held: [] } } });
  requests.push({ worker, frame: { case: "credit", value: { more: CREDIT } } });
  const arrivals = arrivalsOf(createClient(WorkService, transport).session(requests));
  // The verdict on the nothing that is held.
  await arrivals.next();
  return arrivals;
}

/** The time of each frame that brings a verdict or work. */
async function* arrivalsOf(frames: AsyncIterable<SessionResponse>): AsyncGenerator<number> {
  for await (const { frame } of frames)
    if (frame.case === "verdict" || frame.case === "assignments") yield systemClock.monotonicMs();
}

async function drain(acks: AsyncIterator<unknown>): Promise<void> {
  try {
    while ((await acks.next()).done !== true);
  } catch {
    // The connection was closed at the end of the measurement.
  }
}

async function* one(line: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(line);
}
