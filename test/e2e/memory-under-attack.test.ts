// Peers with good certificates who send as much as they can and finish nothing: what a coordinator keeps of it is bounded, and
// those who work do not notice.
import { readFileSync } from "node:fs";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import type { Credentials, Role } from "../../src/transport/tls/identity.ts";
import { newIdentity } from "../support/certificates.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, Settings } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { openRawSession, postUnary } from "../support/raw-session.ts";
import { authorityIn } from "../support/real-authority.ts";

const MIB = 2 ** 20;
const STREAMS = 99;
const MESSAGE_BYTES = Math.floor(3.9 * MIB);
/** The part of each message that is sent: all but its end. */
const SENT_BYTES = MESSAGE_BYTES - 1_024;
const CHUNK = Buffer.alloc(64 * 1_024, 0x2a);
const QUIET_MS = 1_500;

/** A shorter silence comes from other work on this machine. */
const CALM: Settings = {
  "liveness.heartbeat_interval": "1s",
  "liveness.clock_skew_budget": "1900ms",
  "liveness.worker_self_fence_timeout": "8s",
  "liveness.coordinator_failure_timeout": "12s",
};

function anonymousBytes(pid: number): number {
  const kib = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) * 1_024;
}

/** Messages without an end on every stream of a connection, as fast as the coordinator takes them. */
class Flood {
  /** When something was last taken from this side's buffers. */
  movedAtMs = systemClock.monotonicMs();
  readonly #session: ClientHttp2Session;

  constructor(port: number, credentials: Credentials, path: string) {
    const isStream = path.endsWith("/Session");
    this.#session = openRawSession(port, credentials);
    this.#session.setMaxListeners(0);
    this.#session.once("remoteSettings", () => {
      for (let at = 0; at < STREAMS; at++) {
        const type = isStream ? "application/connect+proto" : "application/proto";
        const stream = postUnary(this.#session, path, { "content-type": type });
        const head = Buffer.alloc(5);
        head.writeUInt32BE(MESSAGE_BYTES, 1);
        if (isStream) stream.write(head);
        this.#pour(stream, SENT_BYTES);
      }
    });
  }

  end(): void {
    this.#session.destroy();
  }

  #pour(stream: ClientHttp2Stream, leftBytes: number): void {
    if (leftBytes <= 0 || stream.destroyed) return;
    const chunk = CHUNK.subarray(0, Math.min(CHUNK.length, leftBytes));
    stream.write(chunk, (error) => {
      if (error) return;
      this.movedAtMs = systemClock.monotonicMs();
      this.#pour(stream, leftBytes - chunk.length);
    });
  }
}

async function credentialsOf(cluster: Cluster, role: Role): Promise<Credentials> {
  const authority = await authorityIn(cluster.file("data/tls"));
  return authority.issue({ identity: newIdentity(cluster.runId, role) });
}

describe("messages without an end", () => {
  it("of eight connections cost a coordinator little memory, and its workers nothing", async () => {
    await withCluster(CALM, async (cluster) => {
      const coordinator = await cluster.startCoordinator();
      await cluster.submit(Array.from({ length: 100 }, (_, at) => ({ n: at })));
      const [worker] = await cluster.startWorkers(2);
      const port = Number(cluster.address.split(":")[1]);
      const floods: Flood[] = [];
      const open = async (role: Role, path: string): Promise<void> => {
        const credentials = await credentialsOf(cluster, role);
        for (let at = 0; at < 4; at++) floods.push(new Flood(port, credentials, path));
      };
      let most = 0;
      try {
        await open("worker", "/rollout.v1.WorkService/Session");
        await open("enrolment", "/rollout.v1.EnrolmentService/SignWorkerCertificate");
        await eventually("all that can be sent is sent", () => {
          most = Math.max(most, anonymousBytes(coordinator.pid));
          return floods.every(({ movedAtMs }) => systemClock.monotonicMs() - movedAtMs > QUIET_MS);
        });
        // Small calls pass beside what is held up.
        expect((await cluster.run("status", "--json")).code).to.equal(0);
        await coordinator.nextEvent("worker_heartbeat", await worker?.identity());
      } finally {
        for (const flood of floods) flood.end();
      }
      expect(most).to.be.lessThan(512 * MIB);
      expect(coordinator.seen("worker_suspected")).to.deep.equal([]);
    });
  });
});
