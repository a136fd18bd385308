import { expect } from "chai";
import { failure } from "../../../../src/base/errors.ts";
import { KeptProcess, Member } from "../../../../src/compose/local-run/kept-process.ts";
import type { GivenUp, MemberEnd, MemberEvent } from "../../../../src/compose/local-run/kept-process.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const KILLED: MemberEnd = { code: null, signal: "SIGKILL", error: undefined };

describe("a process that is kept", () => {
  let clock: VirtualClock;
  let lives: { readonly end: (how: MemberEnd) => void; readonly asked: string[] }[];
  let said: string[];
  let givenUp: GivenUp[];
  let kept: KeptProcess;
  let launchFails: Error | undefined;

  function launch(): Member {
    if (launchFails !== undefined) throw launchFails;
    const { promise: ended, resolve: end } = Promise.withResolvers<MemberEnd>();
    const asked: string[] = [];
    lives.push({ end, asked });
    const ask = (how: string): void => {
      asked.push(how);
      end(how === "kill" ? KILLED : { code: 0, signal: null, error: undefined });
    };
    return { ended, stop: () => ask("stop"), kill: () => ask("kill") } as unknown as Member;
  }

  /** The life that goes on ends like that, after so long. */
  async function die(end: MemberEnd, afterMs = 0): Promise<void> {
    await clock.advance(afterMs);
    lives.at(-1)?.end(end);
    await clock.advance(0);
  }

  beforeEach(() => {
    clock = new VirtualClock();
    [lives, said, givenUp, launchFails] = [[], [], [], undefined];
    kept = new KeptProcess({
      ...{ who: "worker 1", launch, clock, logFile: "worker-1.log" },
      say: (sentence) => said.push(sentence),
      onGivenUp: (reason) => givenUp.push(reason),
    });
    kept.start();
  });

  it("is started again when it dies, and the restart is reported", async () => {
    await die(KILLED, 60_000);
    await clock.advance(100);
    expect(lives).to.have.length(2);
    expect(said).to.deep.equal(["worker 1 was killed (SIGKILL); it is started again"]);
  });

  it("is started again for ever, as long as it lives long enough in between", async () => {
    for (let life = 0; life < 20; life++) {
      await die(KILLED, 10_000);
      await clock.advance(100);
    }
    expect(lives).to.have.length(21);
    expect(givenUp).to.deep.equal([]);
  });

  it("waits longer from one quick death to the next, and is given up after four", async () => {
    const waits: number[] = [];
    for (const life of [1, 2, 3, 4]) {
      await die(KILLED, 10);
      for (let waitedMs = 50; lives.length === life && waitedMs < 5_000; waitedMs += 50) {
        await clock.advance(50);
        if (lives.length > life) waits.push(waitedMs);
      }
    }
    expect(waits).to.deep.equal([100, 400, 1_600]);
    expect(lives).to.have.length(4);
    expect(givenUp[0]?.error.message).to.equal(
      "worker 1 does not stay alive: it was killed (SIGKILL) again and again",
    );
  });

  it("is given up at once, with its own error, when it says that it cannot work", async () => {
    const error = { code: "store_corrupt", message: "the database is damaged", hint: "restore a copy" };
    await die({ code: 6, signal: null, error });
    expect(givenUp).to.deep.equal([{ who: "worker 1", error, exit: 6 }]);
    expect(lives).to.have.length(1);
  });

  it("is started again when another command has its database open, which is said once, and not for ever", async () => {
    const error = { code: "store_held", message: "it is held by another process", hint: "wait" };
    const held: MemberEnd = { code: 6, signal: null, error };
    for (let seconds = 0; seconds < 20; seconds++) await die(held, 1_000);
    expect([said, givenUp]).to.deep.equal([
      [`worker 1 has ended: ${error.message}; it is started again when that is over`],
      [],
    ]);
    for (let seconds = 0; seconds < 60; seconds++) await die(held, 1_000);
    expect(givenUp).to.deep.equal([{ who: "worker 1", error, exit: 6 }]);
  });

  it("is given up when it cannot even be launched", async () => {
    launchFails = failure("file_unwritable", { file: "worker-1.log", reason: "no space is left" });
    await die(KILLED, 60_000);
    await clock.advance(100);
    expect(givenUp[0]?.error.message).to.equal("cannot write worker-1.log: no space is left");
  });

  it("is not started again once it was told to stop, whether it lives or waits", async () => {
    await kept.stop();
    expect(lives.map(({ asked }) => asked)).to.deep.equal([["stop"]]);
    await clock.advance(60_000);
    expect(lives).to.have.length(1);
  });

  it("stops while it waits to be started again", async () => {
    await die(KILLED, 1);
    await kept.stop();
    await clock.advance(60_000);
    expect(lives).to.have.length(1);
    expect(clock.armed).to.equal(0);
  });
});

/**
 * Makes objects of which each lives for a while, and tells how large the young generation has become: in the middle of what was seen after
 * it has grown, because pages that are about to be swept count for a moment on a busy machine.
 */
const CHURNING = `
  const { getHeapSpaceStatistics } = require("node:v8");
  const kept = [];
  const sizes = [];
  for (let at = 0; at < 6e6; at++) {
    kept[at % 400_000] = { at, inner: [at] };
    if (at % 50_000 === 0)
      sizes.push(getHeapSpaceStatistics().find((space) => space.space_name === "new_space").space_size);
  }
  const late = sizes.slice(sizes.length / 2).sort((one, other) => one - other);
  const bytes = late[Math.floor(late.length / 2)];
  console.log(JSON.stringify({ kind: "domain", bytes }));`;

describe("a process that lives as a member", () => {
  const directory = useTemporaryDirectory();

  it("has a young generation of 32 MiB at most, where V8 would let it grow", async () => {
    const events: MemberEvent[] = [];
    const member = new Member({
      program: {
        ...{ executable: process.execPath, words: ["-e", CHURNING] },
        ...{ environment: {}, workingDirectory: directory.path },
      },
      ...{ words: ["--"], logFile: directory.file("log") },
      onEvent: (event) => events.push(event),
    });
    expect(await member.ended).to.deep.include({ code: 0 });
    expect(events[0]?.["bytes"]).to.be.within(1, 33 * 2 ** 20);
  });
});
