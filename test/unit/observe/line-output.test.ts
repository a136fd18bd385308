import { closeSync, openSync, readFileSync } from "node:fs";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { LineOutput } from "../../../src/observe/line-output.ts";
import { HeldStream } from "./held-stream.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

const turn = (): Promise<void> => new Promise((resolve) => systemClock.nextTurn(resolve));

function outputTo(stream: HeldStream, limitBytes: number, onBroken?: (error: Error) => void): LineOutput {
  return new LineOutput({
    stream,
    clock: systemClock,
    limitBytes,
    gapLine: (count) => `gap ${count}\n`,
    ...(onBroken === undefined ? {} : { onBroken }),
  });
}

describe("an output of lines", () => {
  const directory = useTemporaryDirectory();

  it("writes the lines of one turn at once", async () => {
    const stream = new HeldStream();
    const output = outputTo(stream, 1_000);
    for (const line of ["a\n", "b\n", "c\n"]) output.write(line);
    expect(stream.writes).to.deep.equal([]);
    await turn();
    expect(stream.writes).to.deep.equal(["a\nb\nc\n"]);
  });

  it("has one write under way, and only whole lines in each", async () => {
    const stream = new HeldStream();
    const output = outputTo(stream, 1_000);
    output.write("a\n");
    await turn();
    output.write("b\n");
    await turn();
    output.write("c\n");
    await turn();
    expect(stream.writes).to.deep.equal(["a\n"]);
    stream.release();
    await turn();
    expect(stream.writes).to.deep.equal(["a\n", "b\nc\n"]);
  });

  it("keeps what fits, drops the rest, and says how much where it would have stood", async () => {
    const stream = new HeldStream();
    const output = outputTo(stream, 6);
    output.write("a\n");
    await turn();
    for (const line of ["b\n", "c\n", "d\n", "e\n", "f\n"]) output.write(line);
    stream.release();
    await turn();
    expect(stream.writes).to.deep.equal(["a\n", "b\nc\n"]);
    stream.release();
    await turn();
    expect(stream.writes).to.deep.equal(["a\n", "b\nc\n", "gap 3\n"]);
    stream.release();
    output.write("g\n");
    await turn();
    await turn();
    expect(stream.text).to.equal("a\nb\nc\ngap 3\ng\n");
  });

  it("says one gap before the first line that fits again", async () => {
    const stream = new HeldStream();
    const output = outputTo(stream, 4);
    output.write("a\n");
    output.write("b\n");
    output.write("c\n");
    await turn();
    output.write("d\n");
    stream.release();
    await turn();
    stream.release();
    output.write("e\n");
    await turn();
    await turn();
    expect(stream.text).to.equal("a\nb\ngap 2\ne\n");
  });

  it("says a gap where it is when a shorter line still fits behind it", async () => {
    const stream = new HeldStream();
    const output = outputTo(stream, 7);
    for (const line of ["aaaa\n", "too long\n", "b\n"]) output.write(line);
    await turn();
    expect(stream.text).to.equal("aaaa\ngap 1\nb\n");
  });

  it("begins a new line for last words, when a write may have stopped within one", async () => {
    const file = directory.file("output");
    const fd = openSync(file, "w");
    const output = outputTo(new HeldStream(), 1_000);
    output.write("under way\n");
    await turn();
    output.write("waiting\n");
    expect(output.writeNow("last\n", fd)).to.equal(true);
    closeSync(fd);
    expect(readFileSync(file, "utf8")).to.equal("\nwaiting\nlast\n");
    expect(output.writeNow("more\n", fd)).to.equal(false);
  });

  it("counts bytes, not characters", async () => {
    const stream = new HeldStream();
    const output = outputTo(stream, 5);
    output.write("éé\n");
    output.write("x\n");
    await turn();
    expect(stream.text).to.equal("éé\n");
    stream.release();
    await turn();
    expect(stream.text).to.equal("éé\ngap 1\n");
  });

  it("goes quiet when its reader has gone, and says so once", async () => {
    const stream = new HeldStream();
    const broken: Error[] = [];
    const output = outputTo(stream, 1_000, (error) => broken.push(error));
    output.write("a\n");
    await turn();
    stream.breakWith(new Error("gone"));
    await turn();
    output.write("b\n");
    await turn();
    await output.close(1_000);
    expect(stream.text).to.equal("a\n");
    expect(broken.map((error) => error.message)).to.deep.equal(["gone"]);
  });

  it("closes when everything has left", async () => {
    const stream = new HeldStream();
    const output = outputTo(stream, 1_000);
    output.write("a\n");
    let closed = false;
    const closing = output.close(60_000).then(() => (closed = true));
    await turn();
    expect([stream.text, closed]).to.deep.equal(["a\n", false]);
    stream.release();
    await closing;
    output.write("late\n");
    await turn();
    expect(stream.text).to.equal("a\n");
  });

  it("closes without waiting when nothing is left", async () => {
    await outputTo(new HeldStream(), 1_000).close(60_000);
  });

  it("closes at its deadline when nobody reads", async () => {
    const output = outputTo(new HeldStream(), 1_000);
    output.write("a\n");
    await output.close(10);
  });
});
