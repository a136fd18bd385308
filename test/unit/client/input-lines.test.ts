import { expect } from "chai";
import { RolloutError } from "../../../src/base/errors.ts";
import { inputLines } from "../../../src/client/input-lines.ts";
import type { InputKind } from "../../../src/client/input-lines.ts";

async function* chunked(text: string | Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** The lines as text; one character a byte, so that nothing is changed by looking at it. */
async function linesOf(text: string | Uint8Array, kind: InputKind, size = 7): Promise<string[]> {
  const lines: string[] = [];
  const options = { name: "in", kind, lineBytesMax: 40 };
  for await (const line of inputLines(chunked(text, size), options))
    lines.push(Buffer.from(line).toString("latin1"));
  return lines;
}

async function refusalOf(text: string | Uint8Array, kind: InputKind): Promise<RolloutError> {
  try {
    await linesOf(text, kind);
  } catch (error) {
    if (error instanceof RolloutError) return error;
    throw error;
  }
  throw new Error("the input was accepted");
}

describe("the lines of an input", () => {
  it("are the same however the bytes arrive", async () => {
    for (const size of [1, 2, 3, 5, 100])
      expect(await linesOf("one\n two \r\n\n\t\nthree", "text", size)).to.deep.equal(["one", "two", "three"]);
  });

  it("keep their exact bytes: numbers are not rounded, and what is no UTF-8 stays", async () => {
    expect(await linesOf("12345678901234567890\n12345678901234567891\n", "json")).to.deep.equal([
      "12345678901234567890",
      "12345678901234567891",
    ]);
    expect(await linesOf(Uint8Array.of(0xff, 0xfe, 0x0a), "text")).to.deep.equal(["\u00ff\u00fe"]);
  });

  it("begin after a mark of UTF-8, however it arrives; one elsewhere stays", async () => {
    for (const size of [1, 2, 100]) {
      expect(await linesOf("\ufeff{}\n1\n", "json", size)).to.deep.equal(["{}", "1"]);
      expect(await linesOf("\ufeffa\n\ufeffb", "text", size)).to.deep.equal(["a", "\u00ef\u00bb\u00bfb"]);
    }
    expect(await linesOf("\ufeff\n", "text")).to.deep.equal([]);
  });

  it("are refused by number when one is no JSON, empty lines counted", async () => {
    const error = await refusalOf('1\n\n{"a":\n2\n', "json");
    expect(error.code).to.equal("input_invalid");
    expect(error.params).to.include({ file: "in", line: "3" });
  });

  it("are refused by line and column where one stops being JSON, or UTF-8", async () => {
    const reasonOf = async (text: string | Uint8Array): Promise<unknown> => {
      const { code, params } = await refusalOf(text, "json");
      expect(code).to.equal("input_invalid");
      return [params["line"], params["reason"]];
    };
    expect(await reasonOf('1\n  {"é": tru}\n')).to.deep.equal(["2", "it is not JSON at column 9"]);
    expect(await reasonOf('["😀" 1]')).to.deep.equal(["1", "it is not JSON at column 6"]);
    const broken = Buffer.concat([Buffer.from('1\n "aé'), Buffer.of(0xff), Buffer.from('"\n')]);
    expect(await reasonOf(broken)).to.deep.equal(["2", "it is not UTF-8 at column 5"]);
    const cut = Buffer.from('"é').subarray(0, 2);
    expect(await reasonOf(cut)).to.deep.equal(["1", "it is not UTF-8 at column 2"]);
    expect(await linesOf('"\ufffd"', "json"), "a character like any other").to.have.length(1);
  });

  it("are refused when one is too long, with or without its end", async () => {
    for (const ending of ["", "\n"]) {
      const error = await refusalOf(`ok\n${"x".repeat(41)}${ending}`, "text");
      expect(error).to.include({ code: "item_too_large" });
      expect(error.params).to.include({ line: "2", bytes: "41", limit: "40" });
      expect(error.hint).to.contain("--payload-limit");
    }
    expect(await linesOf("x".repeat(40), "text")).to.have.length(1);
  });

  it("are refused when one is nested deeper than 64 levels", async () => {
    const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
    const options = { name: "in", kind: "json" as const, lineBytesMax: 1_000 };
    const read = async (text: string): Promise<number> => {
      let count = 0;
      for await (const _ of inputLines(chunked(text, 50), options)) count += _.length > 0 ? 1 : 0;
      return count;
    };
    expect(await read(nested(60))).to.equal(1);
    let refused: unknown;
    await read(nested(70)).catch((error: unknown) => (refused = error));
    expect(refused).to.be.instanceOf(RolloutError);
  });
});
