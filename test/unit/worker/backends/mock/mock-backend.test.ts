import { expect } from "chai";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { seededRandom } from "../../../../../src/base/random.ts";
import {
  openExecutionJournal,
  MockBackend,
  drawSleepMs,
} from "../../../../../src/worker/backends/mock/mock-backend.ts";
import type {
  MockBackendOptions,
  SleepDistribution,
} from "../../../../../src/worker/backends/mock/mock-backend.ts";
import type { ItemAttempt, Outcome } from "../../../../../src/worker/backends/backend.ts";
import { workerId } from "../../../../support/world-worker.ts";
import { failureOf } from "../../../../support/rejection.ts";
import { itemId } from "../../../../support/scripted-coordinator.ts";
import { useTemporaryDirectory } from "../../../../support/temporary-directory.ts";
import { VirtualClock } from "../../../../support/virtual-clock.ts";

const attemptOf = (number: number, attempt = 1): ItemAttempt => ({
  itemId: itemId(number),
  attempt,
  payload: Uint8Array.of(number),
  checkpoint: new Uint8Array(0),
  alone: false,
  env: {},
});

describe("the mock backend", () => {
  let clock: VirtualClock;
  beforeEach(() => (clock = new VirtualClock()));

  function make(options: Partial<MockBackendOptions> = {}): MockBackend {
    return new MockBackend({ clock, random: seededRandom(7), ...options });
  }

  async function kindsOf(backend: MockBackend, count: number): Promise<string> {
    const { signal } = new AbortController();
    const ends = Array.from({ length: count }, (_, at) => backend.execute(attemptOf(at), signal));
    return (await Promise.all(ends)).map(({ kind }) => kind[0]).join("");
  }

  it("gives the payload back, at once unless it is told to sleep", async () => {
    const end = await make().execute(attemptOf(3), new AbortController().signal);
    expect([end, clock.armed]).to.deep.equal([{ kind: "success", output: Uint8Array.of(3) }, 0]);
  });

  it("counts the items of a key in a state of the size that is asked for, and keeps none of any other", async () => {
    const { signal } = new AbortController();
    const backend = make({ stateBytes: 300 });
    const after = async (state: string | undefined): Promise<unknown> => {
      const keyed = { key: "k", ...(state !== undefined && { state: Buffer.from(state) }) };
      const outcome = await backend.execute({ ...attemptOf(1), keyed }, signal);
      return outcome.kind === "success" && outcome.state?.toString();
    };
    expect(await after(undefined)).to.equal("1".padEnd(300));
    expect(await after("41".padEnd(300))).to.equal("42".padEnd(300));
    expect(await backend.execute(attemptOf(1), signal)).to.not.have.property("state");
    expect(await make().execute({ ...attemptOf(1), keyed: { key: "k" } }, signal)).to.not.have.property(
      "state",
    );
  });

  it("sleeps as long as the distribution says", async () => {
    let end: Outcome | undefined;
    const sleep = { kind: "constant", ms: 50 } as const;
    void make({ sleep })
      .execute(attemptOf(3), new AbortController().signal)
      .then((one) => (end = one));
    await clock.advance(49);
    expect(end).to.equal(undefined);
    await clock.advance(1);
    expect(end?.kind).to.equal("success");
  });

  it("ends its sleep when it is not wanted any more", async () => {
    const controller = new AbortController();
    const ending = make({ sleep: { kind: "constant", ms: 50 } }).execute(attemptOf(3), controller.signal);
    controller.abort();
    expect([await ending, clock.armed]).to.deep.equal([{ kind: "preempted" }, 0]);
  });

  it("fails at the rate it is given, in the same places for the same seed", async () => {
    const failureRate = 0.3;
    const kinds = await kindsOf(make({ failureRate }), 1_000);
    expect(kinds.replaceAll("s", "").length).to.be.within(250, 350);
    expect(await kindsOf(make({ failureRate }), 1_000)).to.equal(kinds);
    expect(await kindsOf(make({ failureRate, random: seededRandom(8) }), 1_000)).not.to.equal(kinds);
    expect([await kindsOf(make({ failureRate: 1 }), 3), await kindsOf(make(), 3)]).to.deep.equal([
      "eee",
      "sss",
    ]);
  });

  describe("sleeps by a distribution that is", () => {
    function draw(distribution: SleepDistribution): { min: number; max: number; mean: number } {
      const random = seededRandom(1);
      const drawn = Array.from({ length: 10_000 }, () => drawSleepMs(distribution, random));
      const mean = drawn.reduce((sum, ms) => sum + ms, 0) / drawn.length;
      return { min: Math.min(...drawn), max: Math.max(...drawn), mean };
    }

    it("constant", () => {
      expect(draw({ kind: "constant", ms: 4 })).to.deep.equal({ min: 4, max: 4, mean: 4 });
    });

    it("uniform", () => {
      const { min, max, mean } = draw({ kind: "uniform", minMs: 10, maxMs: 20 });
      expect(min).to.be.within(10, 10.1);
      expect(max).to.be.within(19.9, 20);
      expect(mean).to.be.within(14.8, 15.2);
    });

    it("exponential, and bounded", () => {
      const { min, max, mean } = draw({ kind: "exponential", meanMs: 10 });
      expect(min).to.be.within(0, 0.1);
      expect(max).to.be.within(60, 200);
      expect(mean).to.be.within(9.5, 10.5);
      const extreme = { unit: () => 1 - Number.EPSILON / 2, bytes: () => new Uint8Array() };
      expect(drawSleepMs({ kind: "exponential", meanMs: 10 }, extreme)).to.equal(200);
    });
  });

  describe("leaves a journal", () => {
    const directory = useTemporaryDirectory();

    it("with a line for each execution, before it sleeps", async () => {
      const file = directory.file("journal");
      const journal = openExecutionJournal(file, workerId(1));
      const backend = make({ journal, sleep: { kind: "constant", ms: 1_000 } });
      const controller = new AbortController();
      const ends = [attemptOf(1), attemptOf(2, 3)].map((one) => backend.execute(one, controller.signal));
      const lines = (await readFile(file, "utf8")).split("\n");
      controller.abort();
      await Promise.all(ends);
      journal.close();
      expect(lines).to.deep.equal([
        `01${"00".repeat(31)} 1 ${workerId(1)} ${process.pid}`,
        `02${"00".repeat(31)} 3 ${workerId(1)} ${process.pid}`,
        "",
      ]);
    });

    it("to which several processes add whole lines", async () => {
      const file = directory.file("journal");
      const url = new URL("../../../../../src/worker/backends/mock/mock-backend.ts", import.meta.url).href;
      const program =
        `const { openExecutionJournal } = await import(${JSON.stringify(url)});` +
        `const journal = openExecutionJournal(${JSON.stringify(file)}, "${workerId(2)}");` +
        `for (let at = 1; at <= 500; at++) journal.record(new Uint8Array(32), at);`;
      const children = [1, 2, 3].map(() =>
        spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "ignore" }),
      );
      const codes = await Promise.all(
        children.map(async (child) => (await once(child, "exit"))[0] as unknown),
      );
      expect(codes).to.deep.equal([0, 0, 0]);
      const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
      const line = new RegExp(`^(00){32} \\d+ ${workerId(2)} \\d+$`);
      expect([lines.length, lines.filter((one) => !line.test(one)), new Set(lines).size]).to.deep.equal([
        1_500,
        [],
        1_500,
      ]);
    });

    it("unless it cannot be written, and says why", async () => {
      const opening = Promise.resolve().then(() =>
        openExecutionJournal(directory.file("no/journal"), workerId(1)),
      );
      expect((await failureOf(opening)).code).to.equal("file_unwritable");
    });
  });
});
