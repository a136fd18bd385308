import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect } from "chai";

const MODULE = new URL("../../../src/observe/line-output.ts", import.meta.url).href;

/** A process that makes its standard output non-blocking, as Node does with pipes, and says a megabyte at once. */
function speaker(): ChildProcessByStdio<null, Readable, Readable> {
  const script = `
    const { writeAllSync } = await import(${JSON.stringify(MODULE)});
    process.stdout.write("");
    process.stderr.write(String(writeAllSync(1, "x".repeat(2 ** 20))));
    process.exit();`;
  return spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "pipe"],
  });
}

describe("a synchronous write", () => {
  it("waits for a reader that is slower than the pipe is large, and loses nothing", async () => {
    const { stdout, stderr } = speaker();
    const [written, done] = await Promise.all([text(stdout), text(stderr)]);
    expect(written.length).to.equal(2 ** 20);
    expect(done).to.equal("true");
  });

  it("gives up on a reader that does not read, in bounded time", async () => {
    const { stdout, stderr } = speaker();
    expect(await text(stderr)).to.equal("false");
    stdout.destroy();
  });

  it("gives up on a reader that has gone", async () => {
    const { stdout, stderr } = speaker();
    stdout.destroy();
    expect(await text(stderr)).to.equal("false");
  });
});
