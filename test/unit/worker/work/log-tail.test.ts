import { expect } from "chai";
import { LogTail, LOG_TAIL_BYTES } from "../../../../src/worker/work/log-tail.ts";

describe("the tail of a log", () => {
  const tailOf = (...chunks: (string | Uint8Array)[]): Buffer => {
    const tail = new LogTail();
    for (const chunk of chunks) tail.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
    return Buffer.from(tail.bytes());
  };

  it("is all of a short one, to the byte", () => {
    expect(tailOf("a\n", Uint8Array.of(0xff, 0), "b").toString("latin1")).to.equal("a\n\xff\0b");
    expect(tailOf().length).to.equal(0);
  });

  it("is the end of a long one, and begins with a whole line", () => {
    const lines = Array.from({ length: 20_000 }, (_, at) => `line ${at}\n`);
    const tail = tailOf(...lines).toString();
    expect(tail.length).to.be.within(LOG_TAIL_BYTES - 20, LOG_TAIL_BYTES);
    expect(tail)
      .to.match(/^line \d+\n/)
      .and.satisfy((text: string) => text.endsWith("line 19999\n"));
    expect(lines.join("").endsWith(`\n${tail}`)).to.equal(true);
  });

  it("is no more when all comes at once", () => {
    expect(tailOf(Buffer.alloc(10 * LOG_TAIL_BYTES, "x")).length).to.equal(LOG_TAIL_BYTES);
  });

  it("begins with a whole character where no line ends", () => {
    for (let shift = 0; shift < 4; shift++) {
      const text = tailOf("x".repeat(shift), "😀".repeat(LOG_TAIL_BYTES)).toString();
      expect([text.includes("\ufffd"), text.length > 0]).to.deep.equal([false, true]);
    }
  });

  it("is of the length of the limit when that is what came", () => {
    expect(tailOf(Buffer.alloc(LOG_TAIL_BYTES, "ä")).length).to.equal(LOG_TAIL_BYTES);
  });
});
