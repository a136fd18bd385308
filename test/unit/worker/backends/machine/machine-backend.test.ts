import { expect } from "chai";
import { readFile } from "node:fs/promises";
import { eventually } from "../../../../support/eventually.ts";
import { executeText, useCodeRig } from "../../../../support/code-rig.ts";
import type { CodeRig, Executed } from "../../../../support/code-rig.ts";
import type { CodeBackend } from "../../../../../src/worker/backends/code/code-backend.ts";

const STEP_MS = 20;
/** Enough that an attempt that is ended after a few has some left, on a busy machine too. */
const STEPS = 40;
const LONG = `{"n":${STEPS}}`;
const LONG_OUTPUT = `{"steps":${STEPS},"doubled":${2 * STEPS}}`;

/** Counts to n, a step at a time, writes each into a journal, and doubles n in an invoked actor. */
function counting({ version = "1", more = "" } = {}): string {
  return `
import { appendFileSync } from "node:fs";
import { assign, fromPromise, setup } from "xstate";
export default setup({
  types: { context: {} as { n: number; step: number; doubled: number }, input: {} as { n: number } },
  actors: { doubling: fromPromise(async ({ input }: { input: number }) => input * 2) },
  actions: { note: ({ context }) => appendFileSync("journal", context.step + " ") },
  guards: { enough: ({ context }) => context.step >= context.n },
}).createMachine({
  id: "counting",
  ${version === "" ? "" : `version: "${version}",`}
  context: ({ input }) => ({ n: input.n, step: 0, doubled: 0 }),
  initial: "counting",
  states: {
    counting: {
      entry: "note",
      always: { guard: "enough", target: "doubling" },
      after: { ${STEP_MS}: { target: "counting", reenter: true, actions: assign({ step: ({ context }) => context.step + 1 }) } },
    },
    doubling: {
      invoke: { src: "doubling", input: ({ context }) => context.n, onDone: { target: "done", actions: assign({ doubled: ({ event }) => event.output }) } },
    },
    ${more}
    done: { type: "final" },
  },
  output: ({ context }) => ({ steps: context.step, doubled: context.doubled }),
});`;
}

const WHOLE = Array.from({ length: STEPS + 1 }, (_, step) => `${step} `).join("");

async function journal(rig: CodeRig): Promise<string> {
  return readFile(rig.directory.file("journal"), "utf8");
}

/** An attempt that is ended when it has come so far, and what it leaves. */
async function executeUntil(backend: CodeBackend, payload: string, checkpoints: number): Promise<Executed> {
  const controller = new AbortController();
  let seen = 0;
  return executeText(backend, payload, {
    signal: controller.signal,
    onCheckpoint: () => {
      if (++seen === checkpoints) controller.abort();
    },
  });
}

function checkpointOf({ outcome }: Executed): Uint8Array {
  if (outcome.kind !== "preempted" || outcome.checkpoint === undefined)
    throw new Error(`it left no checkpoint: ${JSON.stringify(outcome)}`);
  return outcome.checkpoint;
}

describe("the machine backend", () => {
  const rig = useCodeRig();

  it("runs a machine to its final state with the item as its input, and has its output", async () => {
    const backend = await rig().machine(counting());
    const { output } = await executeText(backend, `{"n":2}`);
    expect(output).to.equal(`{"steps":2,"doubled":4}`);
  });

  it("leaves a snapshot when it is to end, and another process goes on from it, timers and all", async () => {
    const first = await rig().machine(counting());
    const left = await executeUntil(first, LONG, 3);
    const sofar = await journal(rig());
    expect([WHOLE.startsWith(sofar), sofar.length < WHOLE.length]).to.deep.equal([true, true]);
    const second = await rig().machine(counting());
    const { output, log } = await executeText(second, LONG, { checkpoint: checkpointOf(left) });
    expect([output, await journal(rig()), log]).to.deep.equal([LONG_OUTPUT, WHOLE, ""]);
  });

  it("goes on from the last checkpoint that was reported, when nothing more could be asked", async () => {
    const backend = await rig().machine(counting());
    const { checkpoints } = await executeText(backend, `{"n":2}`);
    const last = checkpoints.at(-1) ?? new Uint8Array(0);
    const { output } = await executeText(backend, `{"n":2}`, { checkpoint: last });
    expect(output).to.equal(`{"steps":2,"doubled":4}`);
    expect(await journal(rig())).to.equal("0 1 2 ");
  });

  it("keeps no more snapshots than the interval allows", async () => {
    const backend = await rig().machine(counting(), { checkpointIntervalMs: 3_600_000 });
    expect((await executeText(backend, `{"n":3}`)).checkpoints).to.deep.equal([]);
  });

  const OTHERS: readonly [what: string, source: string, words: string][] = [
    ["another version", counting({ version: "2" }), "a machine with version 1, and this one has 2"],
    ["no version", counting({ version: "" }), "a machine with version 1, and this one has (none)"],
    [
      "another id",
      counting().replace(`id: "counting"`, `id: "adding"`),
      "with id counting, and this one has adding",
    ],
    ["other states", counting({ more: "pausing: {}," }), "the states of the machine are others"],
  ];
  for (const [what, source, words] of OTHERS) {
    it(`starts anew with a snapshot of a machine with ${what}, and says so in the log`, async () => {
      const left = await executeUntil(await rig().machine(counting()), LONG, 2);
      const before = await journal(rig());
      const backend = await rig().machine(source, {}, "other.ts");
      const { output, log } = await executeText(backend, LONG, { checkpoint: checkpointOf(left) });
      expect(output).to.equal(LONG_OUTPUT);
      expect(log).to.include("starts anew").and.include(words);
      expect(await journal(rig())).to.equal(before + WHOLE);
    });
  }

  it("starts anew with a checkpoint that is none of a machine", async () => {
    const backend = await rig().machine(counting());
    for (const checkpoint of ["garbage", "{}", `{"format":"rollout machine 1","snapshot":{},"timers":[]}`]) {
      const executed = await executeText(backend, `{"n":1}`, { checkpoint: Buffer.from(checkpoint) });
      expect(executed.output).to.equal(`{"steps":1,"doubled":2}`);
      expect(executed.log).to.include("starts anew");
    }
  });

  it("goes on in the timers of a machine that another one has invoked", async () => {
    const source = `
import { appendFileSync } from "node:fs";
import { setup } from "xstate";
const inner = setup({ actions: { note: (_, { word }: { word: string }) => appendFileSync("journal", word + " ") } }).createMachine({
  id: "inner", initial: "one",
  states: {
    one: { entry: { type: "note", params: { word: "one" } }, after: { 300: "two" } },
    two: { entry: { type: "note", params: { word: "two" } }, after: { 50: "over" } },
    over: { type: "final" },
  },
});
export default setup({ actors: { inner } }).createMachine({
  id: "outer", version: "1", initial: "waiting",
  states: { waiting: { invoke: { src: "inner", id: "within", onDone: "over" } }, over: { type: "final" } },
});`;
    const left = await executeUntilText(await rig().machine(source), rig());
    const again = await rig().machine(source);
    const { outcome, checkpoints } = await executeText(again, "1", { checkpoint: left });
    expect(outcome.kind).to.equal("success");
    expect(
      checkpoints.map((bytes) => Buffer.from(bytes).toString()).join(),
      "what the inner one did is kept",
    ).to.include(`"value":"two"`);
    expect(await journal(rig())).to.equal("one two ");
  });

  const ENDS: readonly [what: string, machine: string, kind: string, words: string][] = [
    [
      "throws in an action",
      `initial: "a", states: { a: { entry: () => { throw new Error("no way"); } } }`,
      "error",
      "no way",
    ],
    [
      "has an actor that fails and nobody cares",
      `initial: "a", states: { a: { invoke: { src: fromPromise(async () => { throw new Error("no luck"); }) } } }`,
      "error",
      "no luck",
    ],
    [
      "throws in an output",
      `initial: "a", states: { a: { type: "final" } }, output: () => { throw new Error("no words"); }`,
      "error",
      "no words",
    ],
    [
      "has an output that JSON has not",
      `initial: "a", states: { a: { type: "final" } }, output: () => 1n`,
      "error",
      "BigInt",
    ],
  ];
  for (const [what, machine, kind, words] of ENDS) {
    it(`says of a machine that ${what}`, async () => {
      const source = `import { createMachine, fromPromise } from "xstate"; export default createMachine({ id: "m", ${machine} });`;
      const { outcome } = await executeText(await rig().machine(source), "1");
      expect(outcome.kind).to.equal(kind);
      expect("message" in outcome && outcome.message).to.include(words);
    });
  }

  it("has null as the output of a machine that has none", async () => {
    const source = `import { createMachine } from "xstate"; export default createMachine({ initial: "a", states: { a: { type: "final" } } });`;
    expect((await executeText(await rig().machine(source), "1")).output).to.equal("null");
  });

  const inexact = {
    "a big integer": ["{ big: 1n }", /context\.big is a bigint/],
    "a map, which JSON would change": ["{ seen: new Map([[1, 2]]) }", /context\.seen is a Map/],
    "a date, which JSON would change": ["{ at: [new Date(0)] }", /context\.at\[0\] is a Date/],
  } as const;
  for (const [what, [context, words]] of Object.entries(inexact))
    it(`executes a machine whose context has ${what}, and says that its snapshot cannot be kept`, async () => {
      const source = `
import { createMachine } from "xstate";
export default createMachine({ id: "m", context: ${context}, initial: "a", states: { a: { after: { 20: "b" } }, b: { type: "final" } } });`;
      const { outcome, log, checkpoints } = await executeText(await rig().machine(source), "1");
      expect([outcome.kind, checkpoints]).to.deep.equal(["success", []]);
      expect(log)
        .to.match(/^its snapshot cannot be kept, so another attempt starts anew: .*\n$/)
        .and.match(words);
    });

  it("says of an export that is no machine why it cannot be executed", async () => {
    const backend = await rig().machine(`export default () => 1;`);
    expect(await backend.prepare()).to.include("its export is no XState machine");
  });
});

/** Ends the attempt in the middle of the inner machine's first wait. */
async function executeUntilText(backend: CodeBackend, rig: CodeRig): Promise<Uint8Array> {
  const controller = new AbortController();
  const executing = executeText(backend, "1", { signal: controller.signal });
  const waits = (): Promise<boolean> =>
    journal(rig).then(
      (text) => text !== "",
      () => false,
    );
  await eventually("the inner machine waits", waits);
  controller.abort();
  return checkpointOf(await executing);
}
