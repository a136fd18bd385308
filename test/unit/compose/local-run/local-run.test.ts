import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, open, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { silentDisplay } from "../../../../src/cli/render/progress-display.ts";
import { runLocally } from "../../../../src/compose/local-run/local-run.ts";
import type { LocalRunSummary } from "../../../../src/compose/local-run/request.ts";
import { RunDirectory } from "../../../../src/compose/local-run/run-directory.ts";
import { forgetFinished, lengthsOf } from "../../../../src/compose/local-run/run-record.ts";
import { commandManifest } from "../../../../src/config/manifest.ts";
import { taskOf } from "../../../../src/config/task.ts";
import { rejectionOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const PORTS = { clock: systemClock, random: systemRandom };
const CAT = taskOf(commandManifest(["cat"], "/"));
const INPUT = '{"n":1}\n';
const STARTED = new Error("a run was started");

describe("the same request for a local run, a second time", () => {
  const temporary = useTemporaryDirectory();
  const path = (): string => temporary.file("out.jsonl.rollout");
  let output: string;

  /** A run of `INPUT` that was complete, and whose results are all there. */
  async function leaveFinished(): Promise<void> {
    await writeFile(output, "a line\n");
    const directory = await RunDirectory.claim(path(), "out", CAT, PORTS);
    await mkdir(directory.file("rollout.db"));
    await writeFile(directory.file("rollout.db/CURRENT"), "");
    const how = { format: "jsonl", order: "completion" } as const;
    await directory.cursorPlace.write({
      ...{ version: 1, output: "../out.jsonl" },
      begun: { runId: directory.runId, ...how, withInput: false, errors: null },
      progress: { cursor: "c1.0", bytes: 7, errorsBytes: 0, results: 1, failures: 0 },
    });
    const input = createHash("sha256").update(INPUT).digest("hex");
    const asked = { input, kind: "json", output, errors: "", ...how };
    const finished = { asked, done: 1, failed: 0, failedByClass: {}, lengths: await lengthsOf(asked) };
    await directory.keep({ finished });
    await directory.close();
  }

  /** Rejects with `STARTED` when it is not answered by what is recorded. `meanwhile`: the directory is claimed, and the input does not come. */
  async function ask(meanwhile: () => Promise<void>): Promise<LocalRunSummary> {
    const pipe = temporary.file("pipe");
    execFileSync("mkfifo", [pipe]);
    const answered = runLocally(
      {
        input: { file: pipe, kind: "json", lineBytesMax: 1_024 },
        files: { output, errors: undefined, format: "jsonl", order: "completion" },
        ...{ directory: undefined, workers: 1, slotsPerWorker: 1, retryFailed: false, skipsParked: false },
        ...{ again: undefined },
        ...{ task: CAT, manifest: undefined, flags: {}, itemBytesMax: 1_024 },
        program: { executable: "/nowhere", words: [], environment: {}, workingDirectory: "/" },
      },
      {
        ...PORTS,
        display: silentDisplay,
        interrupted: new Promise(() => undefined),
        onStarted: () => {
          throw STARTED;
        },
      },
    );
    // Resolves when it is read.
    const writing = await open(pipe, "w");
    await meanwhile();
    await writing.writeFile(INPUT);
    await writing.close();
    return answered;
  }

  beforeEach(async () => {
    output = temporary.file("out.jsonl");
    await leaveFinished();
  });

  it("is answered by what is recorded", async () => {
    const { end, counts } = await ask(() => Promise.resolve());
    expect(end).to.deep.equal({ kind: "already" });
    expect(counts).to.include({ done: 1, failed: 0 });
  });

  it("is not answered by a recorded outcome that a coordinator has made invalid while the input was waited for", async () => {
    const asking = ask(() => forgetFinished(`${path()}/rollout.db`));
    expect(await rejectionOf(asking)).to.equal(STARTED);
  });
});
