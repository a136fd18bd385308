import { createHash } from "node:crypto";
import { appendFile, readdir, truncate, writeFile } from "node:fs/promises";
import { expect } from "chai";
import type { LocalInput } from "../../../../src/compose/local-run/local-input.ts";
import { openInput } from "../../../../src/compose/local-run/local-input.ts";
import { useClosers } from "../../../support/closers.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

/** More than the part that is looked at first. */
const MANY = 20_000;
const lineOf = (number: number): string => `{"n":${100_000 + number}}\n`;
const textOf = (count: number): string => Array.from({ length: count }, (_, at) => lineOf(at)).join("");

describe("the input of a local run that is a file", () => {
  const closeLater = useClosers();
  const temporary = useTemporaryDirectory();
  const announcer = { clock: new VirtualClock(), say: () => undefined };

  const file = (): string => temporary.file("in.jsonl");

  async function opened(text: string): Promise<LocalInput> {
    await writeFile(file(), text);
    const source = { file: file(), kind: "json", lineBytesMax: 100 } as const;
    const input = await openInput(source, temporary.file("spool"), announcer);
    closeLater(() => input.close());
    return input;
  }

  async function readAll(input: LocalInput, meanwhile = () => Promise.resolve()): Promise<string[]> {
    const lines: string[] = [];
    for await (const line of input.lines()) {
      lines.push(Buffer.from(line).toString());
      if (lines.length === 1) await meanwhile();
    }
    return lines;
  }

  it("is read once, and recognised later by its content", async () => {
    const text = textOf(MANY);
    const input = await opened(text);
    expect(input.read).to.equal(undefined);
    expect(input.expected).to.be.within(MANY * 0.9, MANY * 1.1);
    expect((await readAll(input)).join("\n")).to.equal(text.trimEnd());
    const digest = createHash("sha256").update(text).digest("hex");
    expect(input.read).to.deep.equal({ items: MANY, digest });
    expect([input.expected, await input.digest()]).to.deep.equal([MANY, digest]);
    expect(await readdir(temporary.path)).to.deep.equal(["in.jsonl"]);
  });

  it("is estimated while it is read: the number of items, by the file's length", async () => {
    const input = await opened(textOf(MANY));
    let expected = 0;
    for await (const line of input.lines()) if (line.length > 0) expected = input.expected;
    expect(expected).to.be.within(MANY * 0.9, MANY * 1.1);
  });

  it("is refused for a line near its start before anything is begun", async () => {
    const opening = failureOf(opened(`${textOf(10)}{\n${textOf(MANY)}`));
    expect(await opening).to.include({ code: "input_refused" });
    expect((await opening).params).to.include({ line: "11" });
  });

  it("is not refused when its first 64 KiB end within a line", async () => {
    const long = `"${"x".repeat(90)}"\n`.repeat(2_000);
    expect(await readAll(await opened(long))).to.have.length(2_000);
  });

  it("gives the items before a line that is no item, and names the line", async () => {
    const input = await opened(`${textOf(MANY)}{\n${lineOf(1)}`);
    const lines: unknown[] = [];
    const reading = (async () => {
      for await (const line of input.lines()) lines.push(line);
    })();
    const error = await failureOf(reading);
    expect([error.code, error.params["line"], lines.length]).to.deep.equal([
      "input_invalid",
      `${MANY + 1}`,
      MANY,
    ]);
    expect(input.read).to.equal(undefined);
  });

  it("may grow meanwhile: the new lines are left for the next run", async () => {
    const input = await opened(textOf(MANY));
    const lines = await readAll(input, () => appendFile(file(), textOf(3)));
    expect(lines).to.have.length(MANY);
  });

  for (const [how, change] of [
    ["edited in its place", () => writeFile(file(), textOf(MANY).replaceAll("n", "m"))],
    ["edited where it was read already", () => writeFile(file(), textOf(MANY).replace("n", "m"))],
    ["cut", () => truncate(file(), 200_000)],
    ["edited so that a line is none", () => writeFile(file(), textOf(MANY).replaceAll("n", "\n"))],
  ] as const)
    it(`does not get to its end when it is ${how} meanwhile`, async () => {
      const input = await opened(textOf(MANY));
      expect((await failureOf(readAll(input, change))).code).to.equal("input_changed");
      expect(input.read).to.equal(undefined);
    });

  it("counts as another input for a second command when it was edited in between", async () => {
    const first = await opened(textOf(2));
    const same = await openInput({ file: file(), kind: "json", lineBytesMax: 100 }, "", announcer);
    closeLater(() => same.close());
    expect(same.identity).to.equal(first.identity);
    expect((await opened(textOf(3))).identity).to.not.equal(first.identity);
    expect(same.known).to.equal(first.known);
  });
});
