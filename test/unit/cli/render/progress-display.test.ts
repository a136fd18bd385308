import { expect } from "chai";
import type { ProgressView } from "../../../../src/cli/render/progress.ts";
import { openDisplay } from "../../../../src/cli/render/progress-display.ts";
import type { DisplayStream, ProgressDisplay } from "../../../../src/cli/render/progress-display.ts";
import { FakeTerminal } from "./fake-terminal.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const PALETTE = { colour: true, unicode: true };

function view(done: number, change: Partial<ProgressView> = {}): ProgressView {
  return {
    counts: { pending: 200 - done, delayed: 0, running: 0, done, failed: 0 },
    failures: {},
    failureMessages: [],
    reassigned: 0,
    total: 200,
    submitted: undefined,
    pace: { kind: "unknown" },
    elapsedMs: 1_000,
    workers: { ready: 1, draining: 0, suspected: 0, failed: 0, cordoned: 0, executing: 0, slots: 1 },
    ...{ release: undefined, situation: undefined },
    ...change,
  };
}

describe("progress on a terminal", () => {
  let clock: VirtualClock;
  let terminal: FakeTerminal;
  let display: ProgressDisplay;

  beforeEach(() => {
    clock = new VirtualClock();
    terminal = new FakeTerminal(80, 24);
    terminal.write("$ rollout run\n");
    terminal.writes.length = 0;
    display = openDisplay(terminal, clock, PALETTE);
  });

  it("is drawn over itself: four lines, however often", async () => {
    for (let done = 0; done <= 200; done += 10) {
      display.update(view(done));
      await clock.advance(100);
    }
    expect(terminal.screen).to.have.length(5);
    expect(terminal.screen[0]).to.equal("$ rollout run");
    expect(terminal.screen[1]).to.contain("100%");
    expect(terminal.screen[2]).to.equal("  200 done");
  });

  it("that does not know its size is drawn as on a usual one", async () => {
    [terminal.columns, terminal.rows] = [0, 0];
    display.update(view(10));
    await clock.advance(100);
    display.update(view(20));
    expect(terminal.writes.join("")).not.to.match(/NaN|Infinity/);
    expect(terminal.writes.at(-1)).to.contain("  20 done").and.contain("\u001b[4A");
  });

  it("escapes control characters in every text that it shows", () => {
    display.update(view(10, { failures: { "a\u001b[2J": 1 }, situation: "b\u202e" }));
    display.say("c\u009b2J\u001b[8m");
    const ours = terminal.writes.join("").replace(/\u001b\[(?:\d+[Am]|[JK])|[\r\n]/g, "");
    expect(ours).not.to.match(/[\u0000-\u001f\u009b\u202e]/);
  });

  it("is drawn ten times a second at most, each time by one write, and the last view is not lost", async () => {
    for (let at = 0; at < 100; at++) {
      display.update(view(at));
      await clock.advance(10);
    }
    expect(terminal.writes.length).to.be.within(10, 11);
    await clock.advance(100);
    expect(terminal.screen[2]).to.contain("99 done");
  });

  it("leaves sentences above the block, whole ones too that are longer than the terminal is wide", async () => {
    display.say("before anything is known");
    display.update(view(10));
    const long = `worker 1 has ended: ${"very ".repeat(30)}badly`;
    display.say(long);
    display.say("worker 2 was killed (SIGKILL); it is started again");
    await clock.advance(200);
    display.update(view(20));
    const [prompt, first, ...rest] = terminal.screen;
    expect([prompt, first]).to.deep.equal(["$ rollout run", "before anything is known"]);
    expect(rest.slice(0, 3).join("")).to.contain("very very").and.contain("badly");
    expect(rest.filter((line) => line.includes("waiting"))).to.deep.equal(["  20 done · 180 waiting"]);
    expect(terminal.screen.at(-5)).to.equal("worker 2 was killed (SIGKILL); it is started again");
  });

  it("is where it was when the terminal is made narrower, then wider", async () => {
    display.update(view(10));
    for (const columns of [30, 20, 100, 50]) {
      terminal.resize(columns);
      await clock.advance(200);
      expect(terminal.screen, `${columns} columns`).to.have.length(5);
      expect(Math.max(...terminal.screen.map((line) => line.length))).to.be.below(columns + 1);
    }
  });

  it("fits a terminal of three rows", () => {
    terminal.rows = 3;
    display.update(view(10));
    expect(terminal.screen).to.have.length(3);
  });

  it("leaves the cursor below the block after each write, and never hides it: a crash leaves a usable terminal", async () => {
    for (const done of [1, 2]) {
      display.update(view(done));
      display.say("a sentence");
      expect(terminal.cursorRow).to.equal(terminal.screen.length);
      await clock.advance(200);
    }
    expect(terminal.writes.join("")).to.not.match(/\u001b\[\?/);
  });

  it("ends with the last view, and leaves no timer and no listener", async () => {
    display.update(view(10));
    display.update(view(200));
    display.end();
    display.end();
    expect(terminal.screen[2]).to.equal("  200 done");
    expect(clock.armed).to.equal(0);
    expect(terminal.listenerCount("resize")).to.equal(0);
    display.say("done");
    expect(terminal.screen.at(-1)).to.equal("done");
  });
});

describe("progress into a pipe", () => {
  it("is a line at the start, every ten percent or ten seconds, when the situation changes, and at the end", async () => {
    const clock = new VirtualClock();
    const said: string[] = [];
    const stream = { isTTY: false, write: (text: string) => said.push(text) > 0 } as unknown as DisplayStream;
    const display = openDisplay(stream, clock, { colour: false, unicode: true });
    const told = (): number => said.splice(0).length;
    display.update(view(0));
    expect(told(), "at the start").to.equal(1);
    display.update(view(19));
    expect(told(), "less than a tenth").to.equal(0);
    display.update(view(20));
    expect(told(), "a tenth").to.equal(1);
    await clock.advance(9_999);
    display.update(view(21));
    expect(told()).to.equal(0);
    await clock.advance(1);
    display.update(view(21));
    expect(told(), "ten seconds").to.equal(1);
    display.update(view(21, { situation: "leaving" }));
    expect(said.splice(0)).to.deep.equal(["1s: 21 of 200 done (10%); leaving\n"]);
    display.update(view(22, { situation: "leaving" }));
    display.end();
    expect(said.splice(0).join("")).to.contain("22 of 200");
    display.end();
    expect(told(), "once").to.equal(0);
  });

  it("adds a line with why items fail, when the reason is a new one", async () => {
    const clock = new VirtualClock();
    const said: string[] = [];
    const stream = { isTTY: false, write: (text: string) => said.push(text) > 0 } as unknown as DisplayStream;
    const display = openDisplay(stream, clock, { colour: false, unicode: true });
    const failed = (items: number): Partial<ProgressView> => ({
      counts: { pending: 0, delayed: 0, running: 0, done: 0, failed: items },
      failureMessages: [
        { failureClass: "error", message: "no\u001b", items, attempts: 0, item: "ab".repeat(32) },
      ],
    });
    display.update(view(0, failed(1)));
    expect(said.splice(0)[1]).to.equal("  1 error, such as item abababababab: no\\u001b\n");
    await clock.advance(10_000);
    display.update(view(0, failed(1)));
    expect(said.splice(0), "the same").to.have.length(1);
    display.update(view(0, failed(40)));
    expect(said.splice(0)).to.have.length(2);
  });
});
