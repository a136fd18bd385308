// Two coordinator processes over one store. The old one is stopped with a write and a reply under way, the new one takes
// over, the old one wakes up and goes on where it was.
import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ulidToBytes } from "../../src/base/ids.ts";
import type { LeaseTiming } from "../../src/coordinator/lead/elector-storage.ts";
import { EPOCH_KEY } from "../../src/storage/keys.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { newIdentity, newRunId, newWorkerId, TestAuthority } from "../support/certificates.ts";
import { useClosers } from "../support/closers.ts";
import { eventually } from "../support/eventually.ts";
import { leadershipIn } from "../support/ledger-rows.ts";
import { pace } from "../support/pace.ts";
import { environmentFor, RolloutProcess } from "../support/rollout-process.ts";
import type { SharedCoordinatorOrder } from "./shared-coordinator-program.ts";
import { SharedStoreServer } from "../support/shared-store-server.ts";
import type { TriedCommit } from "../support/shared-store-server.ts";
import type { SharedCall } from "../support/shared-store-wire.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { beatMessage, workerClient } from "../support/worker-client.ts";
import type { WorkerClient } from "../support/worker-client.ts";

const PROGRAM = fileURLToPath(new URL("./shared-coordinator-program.ts", import.meta.url));
/** As slow as this machine is, as far as a takeover is still done in good time for those who wait for it. */
const SLOWNESS = Math.min(pace(), 3);
/** The times of a real deployment. */
const TIMING: LeaseTiming = {
  ttlMs: 5_000 * SLOWNESS,
  renewalMs: 1_000 * SLOWNESS,
  deadlineMs: 4_000 * SLOWNESS,
};
/** The time in which a call that nobody answers is given up: the longest that a server allows. */
const CALL_TIMEOUT_MS = 60_000;

interface Leader {
  readonly process: RolloutProcess;
  /** A client with a worker's certificate, or an operator's. */
  client(role: "worker" | "operator"): Promise<WorkerClient>;
}

describe("two coordinators over one store", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  const runId = newRunId();
  let ca: TestAuthority;
  let ledger: MemoryStore;
  let server: SharedStoreServer;

  beforeEach(async () => {
    ca = await TestAuthority.make();
    ledger = new MemoryStore();
    server = await SharedStoreServer.start(ledger);
    closeLater(() => server.close());
  });

  async function start(name: string, timing = TIMING): Promise<RolloutProcess> {
    const credentials = await ca.issue(newIdentity(runId, "coordinator"));
    const { address: storeAddress } = server;
    const { path: stateDir } = directory;
    const order: SharedCoordinatorOrder = { name, storeAddress, stateDir, runId, credentials, timing };
    const env = environmentFor({ ORDER: JSON.stringify(order) });
    const started = new RolloutProcess([name], { program: PROGRAM, cwd: directory.path, env });
    closeLater(() => started.kill());
    return started;
  }

  async function leading(process: RolloutProcess): Promise<Leader> {
    const { address } = await process.event("coordinator_leading");
    return {
      process,
      client: async (role) => {
        const opened = await workerClient({ runId, ca, server: { address } }, { role });
        closeLater(opened.close);
        return opened;
      },
    };
  }

  /** An operator whose way to the leader is open: a call that comes too late for a busy machine is made again. */
  async function operatorOf(leader: Leader): Promise<WorkerClient> {
    const operator = await leader.client("operator");
    await eventually("an operator is answered", () => answers(operator.run.getRun({})));
    return operator;
  }

  /** Submits a line; resolves with what came of it. */
  async function submit({ run }: WorkerClient): Promise<string> {
    const line = { payload: Buffer.from("a line"), key: "", priority: 0 };
    const submission = { submissionId: ulidToBytes(newWorkerId()), batchNumber: 1n, items: [line] };
    return fate(
      run.submit({ ...submission, taskDigest: new Uint8Array(32) }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
  }

  /** A new leader, while the old one is stopped; the old one wakes up when it returns. */
  async function takeOver(old: RolloutProcess): Promise<{ next: Leader; commitsBefore: number }> {
    old.send("SIGSTOP");
    await eventually("it is stopped", () => stateOf(old) === "T");
    const next = await leading(await start("new"));
    expect(next.process.seen("coordinator_leading")[0]?.epoch).to.equal(1);
    const commitsBefore = server.commits.length;
    server.letAnswersGo();
    old.send("SIGCONT");
    return { next, commitsBefore };
  }

  /** An answer to the old leader is kept back: one that comes behind it, before a busy machine has looked, changes nothing. */
  const holds = (matches: (call: SharedCall) => boolean): boolean =>
    server.held.some(({ call }) => matches(call));

  const triedByOld = (since: number): TriedCommit[] =>
    server.commits.slice(since).filter(({ by }) => by === "old");

  async function expectToLead(leader: Leader): Promise<void> {
    const { beats, worker } = await leader.client("worker");
    await eventually("a worker is heard", () => answers(beats.beat({ beat: beatMessage(worker) })));
    expect(leader.process.seen("coordinator_fenced")).to.deep.equal([]);
    expect((await leadershipIn(ledger)).epoch).to.equal(1);
  }

  it("split_brain_old_coord_self_fences", async () => {
    const old = await leading(await start("old"));
    const operator = await operatorOf(old);
    const { beats, worker } = await old.client("worker");
    await eventually("a worker is heard", () => answers(beats.beat({ beat: beatMessage(worker) })));
    // Its answer does not wait for the batch.
    await eventually("the first heartbeat is in the store", () =>
      server.commits.some(({ batch }) => batch.puts.some(({ key }) => key.startsWith("heartbeats/"))),
    );
    // The reply: a heartbeat is in the store, and that nobody else leads was true when it was read, and the leader has heard of
    // neither yet. The write: a line whose look-up is on its way back. The lease is renewed meanwhile.
    server.keepAnswersBack(
      (by, call) =>
        by === "old" && (writes(call, "heartbeats/") || reads(call, EPOCH_KEY) || reads(call, "ids/")),
    );
    const second = beatMessage(worker, { sequence: 2n });
    const lateReply = fate(beats.beat({ beat: second }, { timeoutMs: CALL_TIMEOUT_MS }));
    await eventually(
      "the heartbeat is in the store, and the epoch was read",
      () => holds((call) => writes(call, "heartbeats/")) && holds((call) => reads(call, EPOCH_KEY)),
    );
    const lateWrite = submit(operator);
    await eventually("the line is looked up", () => holds((call) => reads(call, "ids/")));

    const { next, commitsBefore } = await takeOver(old.process);
    expect(await old.process.ended).to.deep.equal({ code: null, signal: "SIGABRT" });

    const fenced = old.process.seen("coordinator_fenced");
    expect(fenced).to.have.length(1);
    expect(fenced[0]).to.deep.include({ epoch: 0, seen_epoch: 1 });
    expect(fenced[0]?.refused_writes, "writes refused").to.be.at.least(1);
    // The heartbeat's event and answer, and the answer to the submission.
    expect(fenced[0]?.refused_replies, "replies refused").to.be.at.least(3);
    expect(old.process.events.at(-1)).to.include({ topic: "coordinator_fenced" });
    expect(await Promise.all([lateReply, lateWrite])).to.not.include("answered");
    expect(triedByOld(commitsBefore).filter(({ outcome }) => outcome === "committed")).to.deep.equal([]);
    expect(await ledger.scan({ from: "ids/", to: "ids0", limit: 10 })).to.deep.equal([]);
    await expectToLead(next);
    await expectToSayWhoFencedIt();
  });

  /** The one that starts in its place has its record, and leaves the live one's alone. */
  async function expectToSayWhoFencedIt(): Promise<void> {
    const { lease } = (await leadershipIn(ledger)) as { readonly lease: readonly [number, string] };
    const again = await start("old");
    await again.logLine({
      message: `the coordinator before this one was fenced at epoch 0 by coordinator ${lease[1]}, which leads at epoch 1`,
    });
    const databases = readdirSync(directory.file("coordinators")).filter((file) => !file.endsWith(".lock"));
    expect(databases).to.have.length(2);
  }

  it("the store refuses what the old one writes, even when its own clock tells it that it still leads", async () => {
    const old = await leading(await start("old", { ...TIMING, deadlineMs: 600_000 }));
    const operator = await operatorOf(old);
    server.keepAnswersBack((by, call) => by === "old" && reads(call, "ids/"));
    const lateWrite = submit(operator);
    await eventually("the line is looked up", () => holds((call) => reads(call, "ids/")));

    const { next, commitsBefore } = await takeOver(old.process);
    expect(await old.process.ended).to.deep.equal({ code: null, signal: "SIGABRT" });

    const tried = triedByOld(commitsBefore);
    expect(new Set(tried.map(({ outcome }) => outcome))).to.deep.equal(new Set(["conflict"]));
    expect(tried.some(({ batch }) => batch.puts.some(({ key }) => key.startsWith("ids/")))).to.equal(true);
    expect(await lateWrite).to.not.equal("answered");
    expect(old.process.seen("coordinator_fenced")).to.have.length(1);
    expect(old.process.seen("coordinator_fenced")[0]).to.deep.include({ epoch: 0, seen_epoch: 1 });
    expect(await ledger.scan({ from: "ids/", to: "ids0", limit: 10 })).to.deep.equal([]);
    await expectToLead(next);
  });
});

function writes(call: SharedCall, prefix: string): boolean {
  return call.kind === "commit" && call.batch.puts.some(({ key }) => key.startsWith(prefix));
}

function reads(call: SharedCall, prefix: string): boolean {
  return call.kind === "get" && call.key.startsWith(prefix);
}

async function answers(call: Promise<unknown>): Promise<boolean> {
  return (await fate(call)) === "answered";
}

/** `answered`, or what it failed with; never rejects. */
function fate(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "answered",
    (error: unknown) => String(error),
  );
}

/** R, S, T, …, as the kernel has it. */
function stateOf({ pid }: RolloutProcess): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2)[0];
}
