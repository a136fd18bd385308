// Learners of the backends that have any, and how they are asked to save what they have learned: real children.
import { expect } from "chai";
import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Backend, Learner } from "../../../../src/worker/backends/backend.ts";
import { ProcessBackend } from "../../../../src/worker/backends/process/process-backend.ts";
import { BackendRig } from "../../../support/backend-rig.ts";
import { useClosers } from "../../../support/closers.ts";
import { executeText, useCodeRig } from "../../../support/code-rig.ts";
import { eventually } from "../../../support/eventually.ts";
import { rejectionOf } from "../../../support/rejection.ts";
import type { TemporaryDirectory } from "../../../support/temporary-directory.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { protocolChild } from "./process/protocol-child.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../examples/process-worker", import.meta.url));
const NEVER = new AbortController().signal;

interface Opened {
  readonly backend: Backend;
  /** An item, to its end. */
  readonly execute: () => Promise<unknown>;
  /** Starts a process that is ready, and has had no item. */
  readonly startIdle: () => Promise<unknown>;
}

interface Kind {
  readonly open: (source: string) => Promise<Opened>;
  /** Code that has learned how many items it has executed, and does this when it is to save that; nothing that saves unless said. */
  readonly source: (saving?: string) => string;
  /** Within `saving`. */
  readonly writes: string;
  readonly fails: string;
  readonly dies: string;
}

const WRITE = `process.getBuiltinModule("fs").writeFileSync("learned", JSON.stringify([items, timeLeftMs]));`;

function learnersOf(backend: Backend): readonly Learner[] {
  return backend.learners?.() ?? [];
}

/** Why it was not saved. */
async function refusalOf(learner: Learner | undefined, signal = NEVER): Promise<string> {
  return String(await rejectionOf(learner?.save(1_000, signal) ?? Promise.resolve()));
}

describe("what has been learned", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  const rig = useCodeRig();
  let hosts = 0;

  /** A backend with this child. */
  async function openProcess(command: readonly string[]): ReturnType<Kind["open"]> {
    // Each host of children has a place of its own: one that finds the records of another ends that one's children.
    const place = directory.file(`host-${++hosts}`);
    await mkdir(place);
    const opened = await BackendRig.open(
      {
        open: ({ env, ...around }) =>
          new ProcessBackend({
            ...around,
            ...{ command, cwd: directory.path, concurrency: 1 },
            ...{ readyTimeoutMs: 15_000, killGraceMs: 5_000 },
            ...{ maxOutputBytes: 10_000, maxCheckpointBytes: 1_000, maxStateBytes: 1_000 },
            env: { ...env, PYTHONPATH: EXAMPLE, PYTHONDONTWRITEBYTECODE: "1" },
          }),
      },
      place,
    );
    closeLater(() => opened.close());
    const startIdle = async (): Promise<void> => {
      opened.mayBegin = false;
      opened.give(Buffer.from("1"));
      await eventually("the item is not let begin", () => opened.executor.load === 0);
      opened.mayBegin = true;
    };
    return { backend: opened.backend, execute: () => opened.run(Buffer.from("1")), startIdle };
  }

  const kinds: Readonly<Record<string, Kind>> = {
    "a process": {
      open: (source) => openProcess(protocolChild(source)),
      source: (saving) => `
        let items = 0;
        say({ type: "ready", saves: ${saving !== undefined} });
        onLine(({ type, id, time_left_ms: timeLeftMs }) => {
          if (type === "item") { items++; say({ type: "result", id, output: 1 }); }
          if (type === "save") { ${saving ?? ""} }
        });`,
      writes: `${WRITE} say({ type: "saved" });`,
      fails: `say({ type: "not_saved", message: "no space" });`,
      dies: "exit(3);",
    },
    "a process in Python": {
      open: (source) => openProcess(["python3", "-c", source]),
      source: (saving) =>
        [
          "import json, os",
          "from rollout_worker import serve",
          "items = []",
          "def execute(item):",
          "  items.append(item)",
          "def save(seconds):",
          `  ${saving ?? "pass"}`,
          `serve(execute, save=${saving === undefined ? "None" : "save"})`,
        ].join("\n"),
      writes: `open("learned", "w").write(json.dumps([len(items), round(1000 * seconds)]))`,
      fails: `raise OSError("no space")`,
      dies: "os._exit(3)",
    },
    "a module": {
      open: async (source) => {
        const backend = await rig().module(source);
        return { backend, execute: () => executeText(backend, "1"), startIdle: () => backend.prepare() };
      },
      source: (saving) => `
        let items = 0;
        export default () => ++items;
        ${saving === undefined ? "" : `export async function saveTrainState({ timeLeftMs, signal }: any) { ${saving} }`}`,
      writes: WRITE,
      fails: `throw new Error("no space");`,
      dies: "process.exit(3);",
    },
  };

  for (const [name, { open, source, writes, fails, dies }] of Object.entries(kinds))
    describe(`by ${name}`, () => {
      /** That has executed two items. */
      async function learned(saving?: string): Promise<readonly Learner[]> {
        const { backend, execute } = await open(source(saving));
        await execute();
        await execute();
        return learnersOf(backend);
      }

      const place = (): TemporaryDirectory => (name === "a module" ? rig().directory : directory);
      const fileOf = (): unknown => JSON.parse(readFileSync(place().file("learned"), "utf8"));

      it("is saved when it is asked to, and is told how much time there is", async () => {
        const [learner, ...others] = await learned(writes);
        await learner?.save(12_345.678, NEVER);
        expect([fileOf(), others]).to.deep.equal([[2, 12_345], []]);
      });

      it("is nothing before its first item, and where it does not say that it can save", async () => {
        const { backend, execute, startIdle } = await open(source(writes));
        await startIdle();
        expect(learnersOf(backend)).to.deep.equal([]);
        await execute();
        expect(learnersOf(backend)).to.have.length(1);
        expect(await learned()).to.deep.equal([]);
      });

      it("is not saved where that fails, for the reason that it gives", async () => {
        const [learner] = await learned(fails);
        expect(await refusalOf(learner)).to.include("no space");
      });

      it("is not saved where it dies of it", async () => {
        const [learner] = await learned(dies);
        expect(await refusalOf(learner)).to.include("exit code 3");
      });
    });

  it("by a module is given up by a signal when there is no time left", async () => {
    const source = kinds["a module"]?.source(
      `await new Promise((resolve) => signal.addEventListener("abort", resolve)); throw new Error("given up");`,
    );
    const backend = await rig().module(source ?? "");
    await executeText(backend, "1");
    const [learner] = backend.learners();
    const over = new AbortController();
    const saving = refusalOf(learner, over.signal);
    let isOver = false;
    void saving.then(() => (isOver = true));
    over.abort();
    await eventually("it is over", () => isOver);
    expect(await saving).to.include("given up");
  });
});
