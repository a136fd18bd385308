import { expect } from "chai";
import { AwsHints } from "../../../../src/worker/preemption/aws.ts";
import type { AwsTiming } from "../../../../src/worker/preemption/aws.ts";
import { AwsMetadataServer } from "../../../support/metadata-server.ts";
import type { Fault, MetadataServerOptions } from "../../../support/metadata-server.ts";
import { addressOf, constantRandom, Watching } from "./watching.ts";

const POLL_MS = 5_000;
const TIMING: AwsTiming = { pollIntervalMs: POLL_MS, requestTimeoutMs: 1_500, tokenTtlSec: 21_600 };

describe("preemption notices of aws", () => {
  let server: AwsMetadataServer;
  let watching: Watching;

  const start = async (timing?: Partial<AwsTiming>, options?: MetadataServerOptions): Promise<void> => {
    watching = new Watching();
    const { clock, log } = watching;
    server = await AwsMetadataServer.start({ clock, ...options });
    // Backoff at its longest.
    const random = constantRandom(1);
    const address = addressOf(server);
    watching.start(new AwsHints({ address, clock, random, log, timing: { ...TIMING, ...timing } }));
    await watching.idle(POLL_MS);
  };

  /** One more round, and what it finds. */
  const poll = (): Promise<void> => watching.clock.advance(POLL_MS);

  /** One that finds nothing new. */
  const round = async (): Promise<void> => {
    await poll();
    await watching.idle(POLL_MS);
  };

  afterEach(async () => {
    await watching.stop();
    expect(watching.clock.armed, "timers left").to.equal(0);
    await server.close();
  });

  it("are asked for every five seconds, with one token, and reported with the lead that is left", async () => {
    await start();
    await round();
    expect(watching.hints).to.deep.equal([]);
    server.preempt();
    await poll();
    await watching.over();
    expect(watching.hints).to.deep.equal([
      { kind: "preemption", cause: "aws", leadMs: 115_000, noticedAtMs: 17_000 },
    ]);
    const [first, ...others] = server.requests.map(({ method, path }) => `${method} ${path}`);
    expect(first).to.equal("PUT /latest/api/token");
    expect(new Set(others)).to.deep.equal(
      new Set([
        "GET /latest/meta-data/spot/instance-action",
        "GET /latest/meta-data/events/recommendations/rebalance",
      ]),
    );
    expect(others.at(-1)).to.equal("GET /latest/meta-data/spot/instance-action");
    expect(server.tokensGiven).to.equal(1);
    expect(watching.log.lines).to.deep.equal([]);
  });

  it("count their lead on the server's clock, however wrong ours is", async () => {
    await start({}, { aheadMs: -86_400_000 });
    watching.clock.jumpWall(1_000);
    server.preempt({ leadMs: 20_000, action: "stop" });
    await poll();
    await watching.over();
    expect(watching.hints).to.deep.equal([
      { kind: "preemption", cause: "aws", leadMs: 15_000, noticedAtMs: 12_000 },
    ]);
  });

  it("count their lead from when they were asked for, not from when a slow answer came", async () => {
    await start();
    server.preempt({ leadMs: 25_000 });
    server.misbehave({ kind: "slow", delayMs: 1_000 }, 1);
    const asked = server.requests.length;
    await poll();
    await server.asked(asked + 1);
    await watching.clock.advance(1_000);
    await watching.over();
    expect(watching.hints).to.deep.equal([
      { kind: "preemption", cause: "aws", leadMs: 19_000, noticedAtMs: 12_000 },
    ]);
  });

  const leads = { "is over": [-30_000, 0], "is longer than there is": [600_000, 120_000] } as const;
  for (const [what, [saidMs, leadMs]] of Object.entries(leads))
    it(`have a lead of ${leadMs} ms when the one that they name ${what}`, async () => {
      await start();
      server.preempt({ leadMs: saidMs });
      await poll();
      await watching.over();
      expect(watching.hints).to.have.length(1);
      expect(watching.hints[0]).to.include({ leadMs });
    });

  it("have no lead when the machine hibernates, because that has begun", async () => {
    await start();
    server.preempt({ action: "hibernate" });
    await poll();
    await watching.over();
    expect(watching.hints[0]).to.include({ kind: "preemption", leadMs: 0 });
  });

  const unreadable = {
    nothing: "",
    "no JSON": "<html>soon</html>\u001b[2J",
    "another value": "null",
    "no time": '{"action":"terminate"}',
    "a time of no zone": '{"action":"stop","time":"2026-01-01T00:01:00"}',
    "a time that is none": '{"action":"stop","time":"2026-13-41T00:01:00Z"}',
    "a number": '{"action":"stop","time":1767225600}',
  };
  for (const [what, body] of Object.entries(unreadable))
    it(`are notices as well when they say ${what}: reported and logged once, until one says when`, async () => {
      await start();
      server.preemptUnreadably(body);
      await round();
      await round();
      expect(watching.hints).to.deep.equal([
        { kind: "preemption", cause: "aws", leadMs: undefined, noticedAtMs: 12_000 },
      ]);
      expect(watching.log.lines.map(({ level }) => level)).to.deep.equal(["warn"]);
      expect(String(watching.log.lines[0]?.fields["body"])).not.to.include("\u001b");
      server.preempt({ leadMs: 40_000 });
      await poll();
      await watching.over();
      expect(watching.hints.slice(1)).to.deep.equal([
        { kind: "preemption", cause: "aws", leadMs: 35_000, noticedAtMs: 22_000 },
      ]);
    });

  it("have an unknown lead when the server does not say what time it is", async () => {
    await start();
    server.misbehave({ kind: "body", body: '{"action":"stop","time":"2026-01-01T00:01:00Z"}' }, 1);
    await round();
    expect(watching.hints).to.have.length(1);
    expect(watching.hints[0]).to.include({ leadMs: undefined });
  });

  it("come after a recommendation to rebalance, which is said once", async () => {
    await start();
    server.rebalance();
    for (let rounds = 0; rounds < 2; rounds++) await round();
    server.preempt();
    await poll();
    await watching.over();
    expect(watching.hints.map(({ kind }) => kind)).to.deep.equal(["rebalance", "preemption"]);
  });

  it("are found in the same round when the token is refused", async () => {
    await start();
    server.expireTokens();
    server.preempt();
    await poll();
    await watching.over();
    expect(watching.hints).to.have.length(1);
    expect(server.statuses.slice(-3)).to.deep.equal([401, 200, 200]);
  });

  it("are asked for with a new token before the old one expires", async () => {
    await start({ tokenTtlSec: 20 });
    for (let rounds = 0; rounds < 8; rounds++) await round();
    expect(server.tokensGiven).to.equal(5);
    expect(server.statuses).not.to.include(401);
  });

  it("are found with the old token while no new one is to be had", async () => {
    await start({ tokenTtlSec: 20 });
    await round();
    server.misbehave({ kind: "status", status: 503 }, 1);
    server.preempt();
    await poll();
    await watching.over();
    expect(server.requests.at(-2)).to.include({ method: "PUT" });
    expect(watching.hints).to.have.length(1);
  });

  it("are not asked for without end when every token is refused", async () => {
    await start();
    const asked = server.requests.length;
    server.misbehave({ kind: "status", status: 401 });
    await poll();
    await watching.idle(2 * POLL_MS);
    expect(server.requests.length - asked).to.equal(2);
    expect(watching.warnings).to.deep.equal(["it gives no token, it answers 401"]);
  });

  it("are asked for again after a question that hangs", async () => {
    await start();
    server.preempt();
    server.misbehave({ kind: "hang" }, 1);
    const asked = server.requests.length;
    await poll();
    await server.asked(asked + 1);
    await watching.clock.advance(TIMING.requestTimeoutMs);
    await watching.idle(2 * POLL_MS);
    expect(watching.hints).to.deep.equal([]);
    await watching.clock.advance(2 * POLL_MS);
    await watching.over();
    // 16.5 s have passed, and the server dates its answers in whole seconds.
    expect(watching.hints[0]).to.include({ leadMs: 104_000 });
  });

  const faults: readonly Fault[] = [
    { kind: "status", status: 500 },
    { kind: "status", status: 403 },
    { kind: "redirect", location: "/latest/meta-data/" },
    { kind: "cut" },
    { kind: "truncate" },
    { kind: "flood" },
  ];
  for (const fault of faults)
    it(`are asked for again after ${JSON.stringify(fault)}`, async () => {
      await start();
      server.preempt();
      server.misbehave(fault, 1);
      await poll();
      await watching.idle(2 * POLL_MS);
      expect(watching.hints).to.deep.equal([]);
      await watching.clock.advance(2 * POLL_MS);
      await watching.over();
      expect(watching.hints).to.have.length(1);
      expect(watching.warnings).to.have.length(1);
    });

  it("are asked for less often while the server fails, but never less than every 20 s", async () => {
    await start();
    server.misbehave({ kind: "status", status: 503 });
    await poll();
    for (const waitMs of [10_000, 15_000, 20_000, 20_000]) {
      await watching.idle(waitMs);
      await watching.clock.advance(waitMs);
    }
    await watching.idle(20_000);
    expect(watching.warnings).to.deep.equal(["it answers 503"]);
    server.heal();
    await watching.clock.advance(20_000);
    await watching.idle(POLL_MS);
    expect(watching.log.lines.map(({ level }) => level)).to.deep.equal(["warn", "info"]);
  });

  it("are awaited without a token that could be sent", async () => {
    watching = new Watching();
    const { clock, log } = watching;
    server = await AwsMetadataServer.start({ clock });
    server.misbehave({ kind: "body", body: "no token\u0001\r\nx: y" }, 1);
    watching.start(new AwsHints({ address: addressOf(server), clock, random: constantRandom(1), log }));
    await watching.idle(2 * POLL_MS);
    expect(watching.warnings).to.deep.equal(["it gives a token that is none"]);
    server.preempt();
    await clock.advance(2 * POLL_MS);
    await watching.over();
    expect(watching.hints).to.have.length(1);
  });

  it("are neither reported nor missed in the log once nobody watches", async () => {
    await start();
    server.preempt();
    server.misbehave({ kind: "hang" });
    const asked = server.requests.length;
    await poll();
    await server.asked(asked + 1);
    await watching.stop();
    expect(watching.hints).to.deep.equal([]);
    expect(watching.log.lines).to.deep.equal([]);
  });
});
