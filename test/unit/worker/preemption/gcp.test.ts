import { expect } from "chai";
import { GcpHints } from "../../../../src/worker/preemption/gcp.ts";
import { GcpMetadataServer } from "../../../support/metadata-server.ts";
import type { Fault } from "../../../support/metadata-server.ts";
import { addressOf, constantRandom, until, Watching } from "./watching.ts";

const WAIT_MS = 8_000;
const PATIENCE_MS = 10_000;
const PACE_MS = 1_000;

describe("preemption notices of gcp", () => {
  let server: GcpMetadataServer;
  let watching: Watching;

  beforeEach(async () => {
    watching = new Watching();
    server = await GcpMetadataServer.start({ clock: watching.clock });
  });

  afterEach(async () => {
    await watching.stop();
    await server.close();
    expect(watching.clock.armed, "timers left").to.equal(0);
  });

  /** With backoff at its longest, or at that share of it. */
  const start = (share = 1): void => {
    const { clock, log } = watching;
    watching.start(new GcpHints({ address: addressOf(server), clock, random: constantRandom(share), log }));
  };

  /** Starts, and waits until the server holds the question. */
  const startWaiting = async (): Promise<void> => {
    start();
    await watching.idle(PACE_MS);
    await watching.clock.advance(PACE_MS);
    await until(() => server.waiting === 1);
  };

  it("are waited for, and reported when they come", async () => {
    await startWaiting();
    await watching.clock.advance(3_000);
    expect(watching.hints).to.deep.equal([]);
    server.preempt();
    await watching.over();
    expect(watching.hints).to.deep.equal([
      { kind: "preemption", cause: "gcp", leadMs: undefined, noticedAtMs: 11_000 },
    ]);
    expect(server.requests.map(({ path }) => path)).to.deep.equal([
      "/computeMetadata/v1/instance/preempted",
      "/computeMetadata/v1/instance/preempted?wait_for_change=true&timeout_sec=8&last_etag=4a7b0c0dd5e0f9ab",
    ]);
    for (const { headers } of server.requests) expect(headers).to.have.property("metadata-flavor", "Google");
    expect(watching.log.lines).to.deep.equal([]);
  });

  it("are found that were there before anybody asked", async () => {
    server.preempt();
    start();
    await watching.over();
    expect(watching.hints).to.have.length(1);
  });

  it("are waited for again when a wait ends without a change", async () => {
    await startWaiting();
    for (let wait = 0; wait < 3; wait++) {
      await watching.clock.advance(WAIT_MS);
      const asked = server.requests.length;
      await server.asked(asked + 1);
      await until(() => server.waiting === 1);
    }
    expect(watching.hints).to.deep.equal([]);
    expect(watching.log.lines).to.deep.equal([]);
    server.preempt();
    await watching.over();
    expect(watching.hints).to.have.length(1);
  });

  it("are not missed when they come between two questions", async () => {
    await startWaiting();
    server.misbehave({ kind: "status", status: 503 });
    await watching.clock.advance(WAIT_MS);
    await watching.idle(1_000);
    server.preempt();
    server.heal();
    await watching.clock.advance(1_000);
    await watching.over();
    expect(watching.hints).to.have.length(1);
  });

  it("are asked for again when a question hangs for longer than it may", async () => {
    start();
    await watching.idle(PACE_MS);
    server.misbehave({ kind: "hang" }, 1);
    await watching.clock.advance(PACE_MS);
    await server.asked(2);
    server.preempt();
    await watching.idle(PATIENCE_MS);
    await watching.clock.advance(PATIENCE_MS);
    await watching.idle(1_000);
    expect(watching.warnings).to.deep.equal(["no answer within 10000 ms"]);
    await watching.clock.advance(1_000);
    await watching.over();
    expect(watching.hints).to.deep.equal([
      { kind: "preemption", cause: "gcp", leadMs: undefined, noticedAtMs: 19_000 },
    ]);
  });

  const faults: readonly Fault[] = [
    { kind: "status", status: 404 },
    { kind: "redirect", location: "/computeMetadata/v1/instance/preempted" },
    { kind: "cut" },
    { kind: "truncate" },
    { kind: "flood" },
  ];
  for (const fault of faults)
    it(`are asked for again after ${JSON.stringify(fault)}`, async () => {
      server.preempt();
      server.misbehave(fault, 1);
      start();
      await watching.idle(1_000);
      expect(watching.hints).to.deep.equal([]);
      expect(watching.warnings).to.have.length(1);
      await watching.clock.advance(1_000);
      await watching.over();
      expect(watching.hints).to.have.length(1);
    });

  it("are not believed of a server that is not Google's", async () => {
    server.misbehave({ kind: "body", body: "TRUE" });
    start();
    await watching.idle(1_000);
    expect(watching.hints).to.deep.equal([]);
    expect(watching.warnings).to.deep.equal(["what answers is not a server of Google"]);
  });

  it("are asked for less often while the server fails, but at least every 5 s", async () => {
    server.misbehave({ kind: "status", status: 503 });
    start(0.9);
    for (const waitMs of [900, 1_800, 3_600, 4_500, 4_500]) {
      await watching.idle(waitMs);
      await watching.clock.advance(waitMs);
    }
    await watching.idle(4_500);
    expect(watching.warnings).to.deep.equal(["it answers 503"]);
    server.heal();
    await watching.clock.advance(4_500);
    await watching.idle(PACE_MS);
    expect(watching.log.lines.map(({ level }) => level)).to.deep.equal(["warn", "info"]);
  });

  it("are asked for once a second of a server that does not wait", async () => {
    server.stopWaiting();
    start();
    for (let second = 0; second < 3; second++) {
      await watching.idle(PACE_MS);
      await watching.clock.advance(PACE_MS);
    }
    await watching.idle(PACE_MS);
    expect(server.requests).to.have.length(4);
    server.preempt();
    await watching.clock.advance(PACE_MS);
    await watching.over();
  });

  it("are asked for once a second, without a wait, of a server that does not name its state", async () => {
    server.forgetEtags();
    start();
    await watching.idle(PACE_MS);
    server.preempt();
    await watching.clock.advance(PACE_MS);
    await watching.over();
    expect(watching.hints).to.have.length(1);
    for (const { path } of server.requests) expect(path).not.to.include("wait_for_change");
  });

  it("end without a word when nobody watches any more", async () => {
    await startWaiting();
    await watching.stop();
    server.preempt();
    expect(watching.hints).to.deep.equal([]);
    expect(watching.log.lines).to.deep.equal([]);
  });
});
