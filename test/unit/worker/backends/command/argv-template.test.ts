import { expect } from "chai";
import { execFileSync } from "node:child_process";
import {
  fillCommand,
  fillShellText,
  isTemplate,
} from "../../../../../src/worker/backends/command/argv-template.ts";
import type { Filled } from "../../../../../src/worker/backends/command/argv-template.ts";

const payload = Buffer.from(
  '{"id": 12345678901234567890, "name": "a b", "tags": ["x", {"y": 1.50}], "no": null}',
);

describe("a command's template", () => {
  const fill = (...words: string[]): Filled => fillCommand(words, payload);
  const filled = (...words: string[]): readonly string[] => {
    const result = fill(...words);
    if (result.kind !== "filled") throw new Error(result.message);
    return result.command;
  };

  it("is filled with the whole payload, to the byte", () => {
    expect(filled("p", "{}", "--x={}")).to.deep.equal(["p", payload.toString(), `--x=${payload.toString()}`]);
  });

  it("is filled with fields: a string as it is, anything else as its JSON, numbers unchanged", () => {
    expect(filled("{.name}", "{.id}", "{.tags}", "{.tags.1.y}", "{.tags.0}", "{.no}")).to.deep.equal([
      "a b",
      "12345678901234567890",
      '["x",{"y":1.50}]',
      "1.50",
      "x",
      "null",
    ]);
  });

  it("fills a value into one word, whatever the value is", () => {
    expect(filled("{.name}-{.name}")).to.deep.equal(["a b-a b"]);
  });

  it("leaves every other brace as it is, and one more pair makes a placeholder stand for itself", () => {
    const words = ["awk", "{print $1}", "${HOME}", "{ }", "{a}", '{"k":{"v":1}}', "}{", "{{ x }}", "{.}"];
    expect(filled(...words)).to.deep.equal(words);
    expect(filled("{{}}", "{{.name}}")).to.deep.equal(["{}", "{.name}"]);
    expect(["{}", "x{.a}", "{{}}", "{a}"].map(isTemplate)).to.deep.equal([true, true, false, false]);
  });

  it("names the field that an item lacks", () => {
    const lacks = (word: string, of: string | Uint8Array = payload): unknown => {
      const result = fillCommand(["p", word], Buffer.from(of));
      return result.kind === "lacking" && result.message;
    };
    expect(lacks("{.who}")).to.equal("the item has no field who");
    expect(lacks("{.tags.1.z}")).to.equal("the item has no field tags.1.z");
    expect(lacks("{.constructor}")).to.equal("the item has no field constructor");
    expect(lacks("{.a}", "just text")).to.equal("the item is not JSON, so it has no field a");
    expect(lacks("{}", Uint8Array.of(0xff))).to.equal(
      "the item is not valid UTF-8, so it cannot be an argument",
    );
  });

  describe("for a shell", () => {
    const run = (text: string, item: string): string => {
      const result = fillShellText(text, Buffer.from(item));
      if (result.kind !== "filled") throw new Error(result.message);
      const [program = "", ...args] = result.command;
      return execFileSync(program, args, { encoding: "utf8" });
    };
    const nasty = `a  b; $(echo no) \`echo no\` "q" 'q' \\ *`;
    const item = JSON.stringify({ nasty });

    for (const [name, text] of [
      ["without quotes", "printf '<%s>' {.nasty}"],
      ["in double quotes", 'printf "<%s>" "{.nasty}"'],
      ["in single quotes", "printf '<%s>' '{.nasty}'"],
      ["behind an escaped quote", 'printf "\\"" ; printf "<%s>" "{.nasty}"'],
    ] as const)
      it(`has one word of what is filled in ${name}, and none of it is executed`, () => {
        expect(run(text, item)).to.match(/<.*>$/).and.include(`<${nasty}>`);
      });

    it("fills a value into a part of a word, and more than nine values", () => {
      expect(run("echo pre-{.nasty}-post 'x{.nasty}y'", item)).to.equal(`pre-${nasty}-post x${nasty}y\n`);
      expect(run("echo {.n}{.n}{.n}{.n}{.n}{.n}{.n}{.n}{.n}{.n}{.m}", '{"n":1,"m":2}')).to.equal(
        "11111111112\n",
      );
    });

    it("is a shell's text otherwise", () => {
      expect(run("echo {.n} | tr 1 2; echo '{}' \"{{}}\" | wc -l", '{"n":1}')).to.equal("2\n1\n");
    });
  });
});
