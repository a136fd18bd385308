// Many workers in one process, each the product's own: an identity, a certificate, a TLS connection, a session and a heartbeat of
// its own. Started with the coordinator's address, the run, the CA's directory, how many, how long an item takes, and
// the times of liveness (heartbeat interval, self-fence, failure).
// Says one JSON object a line: `ready` when all are known, then `executed` with an item's payload for each execution,
// and `fatal` for what must not happen. Ends when its standard input does.
import { sleep, systemClock } from "../../src/base/clock.ts";
import { describeError } from "../../src/base/errors.ts";
import type { RunId, WorkerId } from "../../src/base/ids.ts";
import { newUlid } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { NoopEmitter } from "../../src/observe/events.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { openAuthority } from "../../src/transport/tls/authority.ts";
import type { Backend } from "../../src/worker/backends/backend.ts";
import { Worker } from "../../src/worker/worker.ts";
import { fixedPlugins } from "../support/fixed-plugins.ts";

const [address = "", run = "", tlsDir = "", ...numbers] = process.argv.slice(2);
const [count = 1, itemMs = 0, heartbeatIntervalMs = 0, selfFenceTimeoutMs = 0, failureTimeoutMs = 0] =
  numbers.map(Number);
const runId = run as RunId;
const AT_ONCE = 25;
const [clock, random] = [systemClock, systemRandom];
const { authority } = await openAuthority({ tlsDir, clock, random });

function say(line: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const backend: Backend = {
  async execute({ payload }) {
    say({ executed: Buffer.from(payload).toString() });
    await sleep(clock, itemMs);
    return { kind: "success", output: payload };
  },
  close: () => Promise.resolve(),
};

async function join(): Promise<Worker> {
  const workerId = newUlid<WorkerId>(clock, random);
  const credentials = await authority.issue({ identity: { runId, role: "worker", id: workerId } });
  return Worker.start({
    runId,
    workerId,
    store: new MemoryStore(),
    address,
    credentials: { kind: "own", credentials },
    slots: 1,
    work: { plugins: fixedPlugins(backend), prefetch: 1 },
    heartbeatIntervalMs,
    selfFenceTimeoutMs,
    failureTimeoutMs,
    clock,
    random,
    events: new NoopEmitter(),
    log: silentLogger,
    onFatal: (error) => say({ fatal: describeError(error) }),
    onEnded: (error) => say({ fatal: describeError(error) }),
  });
}

process.stdin.on("end", () => process.exit(0)).resume();
for (let started = 0; started < count; started += AT_ONCE)
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - started) }, join));
say({ ready: count });
