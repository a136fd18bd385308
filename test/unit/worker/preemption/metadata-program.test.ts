// The metadata servers as a process of their own, watched on the real clock.
import { expect } from "chai";
import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { createInterface } from "node:readline";
import { systemClock } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { silentLogger } from "../../../../src/observe/log.ts";
import { cloudHints } from "../../../../src/worker/preemption/cloud.ts";
import type { Hint } from "../../../../src/worker/preemption/compute-hint.ts";
import { parseMetadataUrl } from "../../../../src/worker/preemption/metadata-http.ts";

const PROGRAM = join(import.meta.dirname, "./metadata-program.ts");

describe("the metadata program", () => {
  let program: ChildProcessByStdio<Writable, Readable, null>;
  let lines: AsyncIterator<string>;

  const start = async (cloud: string): Promise<string> => {
    program = spawn(process.execPath, [PROGRAM, cloud], { stdio: ["pipe", "pipe", "inherit"] });
    lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
    return ((await nextLine()) as { url: string }).url;
  };

  const nextLine = async (): Promise<unknown> => JSON.parse(String((await lines.next()).value));

  afterEach(async () => {
    program.stdin.end();
    if (program.exitCode === null) await once(program, "exit");
    expect(program.exitCode).to.equal(0);
  });

  for (const cloud of ["aws", "gcp"] as const)
    it(`preempts a watcher of ${cloud} when it is told to`, async () => {
      const address = parseMetadataUrl(await start(cloud));
      if (address === undefined) throw new Error("the program says no address");
      program.stdin.write("preempt 40000\n");
      expect(await nextLine()).to.deep.equal({ obeyed: "preempt 40000" });
      const hints: Hint[] = [];
      const source = cloudHints("auto", {
        address,
        clock: systemClock,
        random: systemRandom,
        log: silentLogger,
      });
      await source.watch(new AbortController().signal, (hint) => void hints.push(hint));
      expect(hints).to.have.length(1);
      expect(hints[0]).to.include({ kind: "preemption", cause: cloud });
    });
});
