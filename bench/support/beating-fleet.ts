// Many workers' heartbeats from one process: each with an identity, a certificate and a TLS connection of its own, and each
// the product's own heartbeat. Started with the address, the CA's directory, how many, and the interval; `0` as the
// interval means: the next beat as soon as the last one is answered. Commands on standard input, answers on
// standard output, one JSON object a line.
import { createInterface } from "node:readline";
import { createClient } from "@connectrpc/connect";
import { AsyncQueue } from "../../src/base/async-queue.ts";
import { assert } from "../../src/base/assert.ts";
import { sleep, systemClock } from "../../src/base/clock.ts";
import type { IncarnationId, RunId, WorkerId } from "../../src/base/ids.ts";
import { newUlid, ulidToBytes } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { WorkerState } from "../../src/gen/rollout/v1/common_pb.ts";
import { HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { openClient } from "../../src/transport/client.ts";
import { openAuthority } from "../../src/transport/tls/authority.ts";
import { EpochGuard } from "../../src/worker/link/epoch-guard.ts";
import { Heartbeat } from "../../src/worker/life/heartbeat.ts";

const [address = "", run = "", tlsDir = "", count = "1", interval = "500"] = process.argv.slice(2);
const runId = run as RunId;
const intervalMs = Number(interval);
const CONNECTS_AT_ONCE = 50;
const WINDOW = 4;

let accepted = 0;
let failures = 0;
const clock = systemClock;
const random = systemRandom;
const { authority } = await openAuthority({ tlsDir, clock, random });

async function join(): Promise<void> {
  const workerId = newUlid<WorkerId>(clock, random);
  const credentials = await authority.issue({ identity: { runId, role: "worker", id: workerId } });
  const { transport } = openClient({ address, runId, credentials, clock, random, log: silentLogger });
  const client = createClient(HeartbeatService, transport);
  const incarnation = newUlid<IncarnationId>(clock, random);
  const worker = { workerId: ulidToBytes(workerId), incarnation: ulidToBytes(incarnation) };
  const describe = () => ({
    worker,
    state: WorkerState.READY,
    load: 0.5,
    sentAtMs: BigInt(clock.wallMs()),
    slots: 1,
  });
  await new Promise<void>((joined) => {
    const onAccepted = (): void => {
      accepted++;
      joined();
    };
    if (intervalMs === 0) return void beatWithoutPause(client, describe, onAccepted);
    const heart = new Heartbeat({
      client,
      clock,
      random,
      log: silentLogger,
      address: "127.0.0.1:1",
      guard: new EpochGuard([], async () => undefined),
      heartbeatIntervalMs: intervalMs,
      selfFenceTimeoutMs: 4_000,
      answerTimeoutMs: 5_000,
      describe,
      onAccepted,
      onFailed: () => failures++,
      onSuperseded: () => failures++,
    });
    heart.start();
  });
}

async function beatWithoutPause(
  client: { beatStream: ReturnType<typeof createClient<typeof HeartbeatService>>["beatStream"] },
  describe: () => object,
  onAccepted: () => void,
): Promise<void> {
  const outgoing = new AsyncQueue<object>(WINDOW);
  let sequence = 0n;
  const beat = (): void =>
    assert(outgoing.push({ beat: { ...describe(), sequence: ++sequence } }), "within the window");
  for (let open = 0; open < WINDOW; open++) beat();
  for await (const { ack } of client.beatStream(outgoing)) {
    assert(ack !== undefined, "an answer has an acknowledgement");
    onAccepted();
    beat();
  }
}

for (let started = 0; started < Number(count); started += CONNECTS_AT_ONCE) {
  const group = Math.min(CONNECTS_AT_ONCE, Number(count) - started);
  await Promise.all(Array.from({ length: group }, join));
  // Spread over an interval, as a fleet is that did not start in one instant.
  await sleep(clock, random.unit() * 20);
}
process.stdout.write(`${JSON.stringify({ joined: Number(count) })}\n`);
const commands = createInterface({ input: process.stdin });
commands.on("line", () => {
  process.stdout.write(`${JSON.stringify({ accepted, failures, at_ms: clock.monotonicMs() })}\n`);
});
commands.on("close", () => process.exit(0));
