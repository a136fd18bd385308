import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { expect } from "chai";
import { chooseFiles } from "../../../../src/compose/local-run/result-files.ts";
import type { FilesAsked } from "../../../../src/compose/local-run/result-files.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

describe("the files of a local run", () => {
  const temporary = useTemporaryDirectory();
  const file = (name: string): string => temporary.file(name);

  function choose(asked: Partial<FilesAsked>): ReturnType<typeof chooseFiles> {
    const nothing = { output: undefined, errors: undefined, directory: undefined };
    return chooseFiles({ ...nothing, input: undefined, manifest: undefined, ...asked });
  }

  async function refusalOf(asked: Partial<FilesAsked>): Promise<string | undefined> {
    const chosen = await choose(asked);
    return "refusal" in chosen ? chosen.refusal : undefined;
  }

  beforeEach(() => {
    writeFileSync(file("in.jsonl"), "1\n");
    writeFileSync(file("out.jsonl"), "");
    writeFileSync(file("plugin.toml"), "");
    symlinkSync(file("out.jsonl"), file("symbolic"));
    symlinkSync(file("later.jsonl"), file("dangling"));
    linkSync(file("out.jsonl"), file("hard"));
    mkdirSync(file("folder"));
  });

  it("are the output and a file for failures beside it", async () => {
    const output = file("new.jsonl");
    expect(await choose({ output })).to.deep.equal({ output, errors: file("new.errors.jsonl") });
    expect(await choose({ output, errors: file("e") })).to.deep.equal({ output, errors: file("e") });
  });

  it("are none for standard output, by whatever name", async () => {
    for (const output of [undefined, "-", "/dev/stdout"])
      expect(await choose({ output })).to.deep.equal({ output: undefined, errors: undefined });
  });

  for (const name of ["out.jsonl", "symbolic", "hard", "folder/../out.jsonl"]) {
    it(`are refused when both are one, as ${name}`, async () => {
      const output = file("out.jsonl");
      expect(await refusalOf({ output, errors: file(name) })).to.contain("name the same file");
      const spelled = relative(".", `${temporary.path}/${name}`);
      expect(await refusalOf({ output, errors: spelled })).to.contain("name the same file");
    });
  }

  it("are refused when a link makes both the same file, which does not exist yet", async () => {
    const refusal = await refusalOf({ output: file("dangling"), errors: file("later.jsonl") });
    expect(refusal).to.contain("name the same file");
  });

  it("are refused when one is the input or the manifest, also where nobody has named it", async () => {
    const input = file("in.jsonl");
    const manifest = file("plugin.toml");
    expect(await refusalOf({ input, output: input })).to.equal("-o names the input");
    expect(await refusalOf({ input, output: file("o"), errors: input })).to.equal("--errors names the input");
    expect(await refusalOf({ manifest, output: manifest })).to.contain("-o names the plugin's manifest");
    expect(await refusalOf({ manifest, output: file("o"), errors: manifest })).to.contain("manifest");
    writeFileSync(file("o.errors.jsonl"), "1\n");
    expect(await refusalOf({ input: file("o.errors.jsonl"), output: file("o.jsonl") })).to.contain(
      "and that is the input: name another file with --errors",
    );
  });

  it("are refused when they are directories, or files of the run itself", async () => {
    expect(await refusalOf({ output: file("folder") })).to.contain("is a directory: name a file");
    expect(await refusalOf({ output: file("o"), errors: file("folder") })).to.contain("is no file");
    expect(await refusalOf({ output: file("o"), errors: "-" })).to.contain("is no file");
    expect(await refusalOf({ output: file("o"), directory: file("o") })).to.contain("--dir");
  });

  it("are refused where their directory is not there, which is named", async () => {
    const [output, errors] = [file("nope/deeper/o"), file("in.jsonl/e")];
    expect(await refusalOf({ output })).to.equal(
      `-o ${output}: there is no directory ${file("nope/deeper")}`,
    );
    expect(await refusalOf({ output: file("o"), errors })).to.equal(
      `--errors ${errors}: there is no directory ${file("in.jsonl")}`,
    );
  });

  it("may be a device where the run's directory is elsewhere; failures then stand among the results", async () => {
    expect(await refusalOf({ output: "/dev/null" })).to.contain("say with --dir");
    expect(await choose({ output: "/dev/null", directory: file("d") })).to.deep.equal({
      output: "/dev/null",
      errors: undefined,
    });
  });
});
