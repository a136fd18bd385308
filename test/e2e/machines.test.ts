// `rollout machines` on files of a user's, as he runs it.
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { runProgram } from "../support/run-program.ts";
import type { ProgramResult } from "../support/run-program.ts";
import { withDirectory } from "../support/temporary-directory.ts";
import { runOnTerminal } from "./on-terminal.ts";

const LAMPS = `import { createMachine, setup } from "xstate";
console.log("loading");
const circle = {};
circle.self = circle;
export const lamp = setup({
  guards: { isBright: ({ event }) => event.lux > 3 },
  actions: { click: () => { throw new Error("it was executed"); } },
  actors: { warm: null },
}).createMachine({
  id: "lamp", context: { circle }, initial: "off",
  states: {
    off: { on: { press: { guard: "isBright", target: "warming", actions: "click" } } },
    warming: { invoke: { src: "warm", onDone: "on" } },
    on: { after: { 1000: "off" } },
  },
});
export const torch = createMachine({ id: "torch", initial: "<b>", states: { "<b>": {} } });
export const size = 3;
`;

interface Desk {
  readonly directory: string;
  readonly write: (name: string, text: string) => Promise<void>;
  readonly machines: (words: readonly string[], input?: string) => Promise<ProgramResult>;
}

function withDesk(work: (desk: Desk) => Promise<void>): Promise<void> {
  return withDirectory((directory) =>
    work({
      directory,
      write: (name, text) => writeFile(join(directory, name), text),
      machines: (words, input) =>
        runProgram("bin/run.js", ["machines", ...words], {
          cwd: directory,
          ...(input !== undefined && { input }),
        }),
    }),
  );
}

/** The file then gets that package as its XState. */
async function useXstate(directory: string, installed: string): Promise<void> {
  await mkdir(join(directory, "node_modules"));
  await symlink(repositoryFile(`node_modules/${installed}`), join(directory, "node_modules/xstate"));
}

describe("machines of a user's", () => {
  const it = concurrentTests(3);

  it("are listed and drawn, without the output that their file prints", async () => {
    await withDesk(async ({ directory, write, machines }) => {
      await write("lamps.mjs", LAMPS);
      const listed = await machines(["list", "--plugin", "lamps.mjs", "--json"]);
      expect(
        listed.stdout
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as object),
      ).to.deep.equal([
        { name: "lamp", version: "", structure: "", states: ["off", "warming", "on"] },
        { name: "torch", version: "", structure: "", states: ["<b>"] },
      ]);
      expect(listed.stderr).to.equal("loading\n");
      const drawn = await machines([
        "export",
        "--plugin",
        "lamps.mjs#torch",
        "--format",
        "svg",
        "-o",
        "torch.svg",
      ]);
      expect(drawn).to.deep.equal({ code: 0, stdout: "", stderr: "loading\n" });
      const svg = await readFile(join(directory, "torch.svg"), "utf8");
      expect(svg).to.match(/^<svg [\s\S]*data-path="&lt;b&gt;"[\s\S]*<\/svg>\n$/);
    });
  });

  it("are those of actors too, by the manifest that names their types", async () => {
    await withDesk(async ({ machines }) => {
      const manifest = repositoryFile("examples/order/order.toml");
      const drawn = await machines(["export", "--plugin", manifest]);
      expect(drawn.stdout, drawn.stderr).to.contain("cart --> paid: pay [isEnough]");
      const walked = await machines(["simulate", "--plugin", manifest], '{"type": "cancel"}\ncancel\n');
      expect(walked.stdout).to.contain("state: cancelled");
    });
  });

  it("are walked through from a pipe, without an action or an actor", async () => {
    await withDesk(async ({ write, machines }) => {
      await write("lamps.mjs", LAMPS);
      const lines = ["press", 'press {"lux": 5}', "done: warm", "1", "back", "nothing", "{", "quit", "press"];
      const { code, stdout } = await machines(
        ["simulate", "--plugin", "lamps.mjs#lamp", "--json"],
        lines.join("\n"),
      );
      const steps = stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(steps.map(({ outcome, state, detail }) => [outcome, state, detail])).to.deep.equal([
        ["began", "off", null],
        ["refused", "off", "isBright"],
        ["taken", "warming", null],
        ["taken", "on", null],
        ["taken", "off", null],
        ["back", "on", null],
        ["ignored", "on", null],
        ["unclear", "on", "what stands behind the event is no JSON object"],
      ]);
      expect(steps[2]?.["actions"]).to.deep.equal(["click"]);
      expect(code).to.equal(0);
    });
  });

  it("of another copy of XState 5 are taken, and of XState 4 refused with its version", async () => {
    const file = `import { createMachine } from "xstate";
export default createMachine({ id: "m", predictableActionArguments: true, initial: "a", states: { a: { on: { E: "b" } }, b: {} } });`;
    await withDesk(async ({ directory, write, machines }) => {
      await useXstate(directory, "xstate-5.0");
      await write("early.mjs", file);
      const walked = await machines(["simulate", "--plugin", "early.mjs"], "E\n");
      expect(walked.stdout).to.contain("E\nstate: b\n");
    });
    await withDesk(async ({ directory, write, machines }) => {
      await useXstate(directory, "xstate-4");
      await write("old.mjs", file);
      const { code, stderr } = await machines(["export", "--plugin", "old.mjs"]);
      expect(stderr).to.contain("default was made by XState 4.38.3 (make it with XState 5)");
      expect(code).to.equal(2);
    });
  });

  it("that cannot be loaded are refused with the reason", async () => {
    await withDesk(async ({ write, machines }) => {
      await write("lamps.mjs", LAMPS);
      await write("broken.mjs", `throw new Error("no current");`);
      const many = `Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => ["s" + at, {}]))`;
      await write(
        "many.mjs",
        `import { createMachine } from "xstate";
export default createMachine({ id: "many", initial: "s0", states: ${many} });`,
      );
      const refusals = {
        "lamps.mjs": "it exports several machines: lamp, torch",
        "lamps.mjs#size": "it has no machine size, only lamp, torch",
        "broken.mjs": "it throws when it is loaded: no current",
        "none.mjs": "it does not exist",
        "many.mjs": "it has more than 10000 states",
      };
      for (const [place, reason] of Object.entries(refusals)) {
        const { code, stdout, stderr } = await machines(["export", "--plugin", place]);
        expect(stderr).to.contain(reason);
        expect([code, stdout]).to.deep.equal([2, ""]);
      }
    });
  });

  it("walked through on a terminal are prompted for, and left in good order", async () => {
    await withDesk(async ({ directory }) => {
      const shown = await runOnTerminal(["machines", "simulate", "run"], directory, "1\rquit\r");
      expect(shown).to.contain("state: Open.Active\r\n  1  run.paused: Open.Paused\r\n");
      expect(shown).to.contain("> ");
      expect(shown).to.contain("state: Open.Paused\r\n");
      expect(shown).to.not.contain("error");
    });
  });
});
