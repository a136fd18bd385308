import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ProcessBackend } from "../../../../../src/worker/backends/process/process-backend.ts";
import type { Finished } from "../../../../../src/worker/work/execution.ts";
import { assignedItem } from "../../../../support/assigned-item.ts";
import type { BackendCase } from "../../../../support/backend-case.ts";
import { BackendRig } from "../../../../support/backend-rig.ts";
import { useTemporaryDirectory } from "../../../../support/temporary-directory.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../../examples/process-worker", import.meta.url));
const MIB = 1_024 * 1_024;

const example: Pick<BackendCase, "open"> = {
  open: ({ env, ...surroundings }) =>
    new ProcessBackend({
      ...surroundings,
      env: { ...env, PYTHONDONTWRITEBYTECODE: "1" },
      command: ["python3", "infer.py"],
      cwd: EXAMPLE,
      concurrency: 1,
      readyTimeoutMs: 20_000,
      killGraceMs: 5_000,
      maxOutputBytes: MIB,
      maxCheckpointBytes: MIB,
      maxStateBytes: MIB,
    }),
};

describe("the Python example", () => {
  let rig: BackendRig;
  afterEach(() => rig.close());
  const directory = useTemporaryDirectory();
  before("needs python3, which is to be installed where this fails", () => {
    execFileSync("python3", ["--version"]);
  });
  beforeEach(async () => {
    rig = await BackendRig.open(example, directory.path);
  });

  const payload = (value: object): Uint8Array => Buffer.from(JSON.stringify(value));
  const outputOf = ({ outcome }: Finished): unknown =>
    outcome.kind === "success" ? JSON.parse(Buffer.from(outcome.output).toString()) : outcome;

  it("is what its manifest starts", () => {
    const manifest = readFileSync(`${EXAMPLE}/plugin.toml`, "utf8");
    expect(manifest).to.include('command = ["python3", "infer.py"]');
  });

  it("executes items with a model that it has loaded once, on each slot", async () => {
    const first = await rig.run(payload({ prompt: "the sea", words: 3 }));
    const second = await rig.run(payload({ prompt: "sweet" }));
    expect(outputOf(first)).to.deep.equal({ text: "the sea is calm tonight", resumed_at: 2 });
    expect(outputOf(second)).to.deep.equal({ text: "sweet is calm tonight the sea", resumed_at: 1 });
  });

  it("says why an item failed, leaves the traceback in its log, and goes on", async () => {
    const { outcome, log } = await rig.run(payload({ prompt: "entropy" }));
    expect(outcome).to.deep.equal({
      kind: "error",
      message: "ValueError: the model does not know the word entropy",
    });
    expect(Buffer.from(log).toString()).to.match(/^Traceback .*ValueError: .*entropy\n$/s);
    expect((await rig.run(payload({ prompt: "the" }))).outcome.kind).to.equal("success");
  });

  it("goes on where a preempted attempt was", async () => {
    const item = payload({ prompt: "the sea", words: 4, seconds_per_word: 0.05 });
    const first = { ...assignedItem(1, { payload: item }), env: {} };
    const ending = new AbortController();
    let checkpoint: Uint8Array = new Uint8Array(0);
    const outcome = await rig.backend.execute(first, ending.signal, (report) => {
      if (report.kind !== "checkpoint") return;
      checkpoint = report.checkpoint;
      ending.abort();
    });
    expect(outcome).to.deep.equal({ kind: "preempted" });
    expect(Buffer.from(checkpoint).toString()).to.match(/^\["the", "sea", "is"/);
    const attempt = { ...first, attempt: 2, checkpoint };
    const next = await rig.backend.execute(attempt, new AbortController().signal, () => undefined);
    const output = next.kind === "success" ? (JSON.parse(Buffer.from(next.output).toString()) as object) : {};
    expect(output).to.have.property("text", "the sea is calm tonight the");
    expect(output).to.have.property("resumed_at").that.is.greaterThan(2);
  });
});
