import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { createFile, placeFile, replaceFile } from "../../../src/base/file-system.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

describe("a file that is replaced", () => {
  const directory = useTemporaryDirectory();
  const how = (name: string, mode = 0o600) =>
    ({ temporary: directory.file(`${name}.new`), mode, synced: "name" }) as const;

  it("has the new content and its mode, and nothing beside it", async () => {
    const file = directory.file("file");
    writeFileSync(file, "old", { mode: 0o644 });
    await replaceFile(file, "new", how("file"));
    expect(readFileSync(file, "utf8")).to.equal("new");
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(readdirSync(directory.path)).to.deep.equal(["file"]);
  });

  it("leaves nothing beside what it cannot replace", async () => {
    const file = directory.file("directory");
    mkdirSync(file);
    const refused = await replaceFile(file, "new", how("directory")).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refused).to.include({ code: "EISDIR" });
    expect(readdirSync(directory.path)).to.deep.equal(["directory"]);
  });

  it("is created by one of several processes that try", async () => {
    const file = directory.file("once");
    const created = await Promise.all(["a", "b", "c"].map((name) => createFile(file, name, how(name))));
    expect(created.filter(Boolean)).to.have.length(1);
    expect(readFileSync(file, "utf8")).to.equal(["a", "b", "c"][created.indexOf(true)]);
    expect(readdirSync(directory.path)).to.deep.equal(["once"]);
  });

  it("takes the place of another when it was written before", async () => {
    const [file, partial] = [directory.file("file"), directory.file("partial")];
    writeFileSync(file, "old");
    writeFileSync(partial, "new");
    await placeFile(partial, file);
    expect(readFileSync(file, "utf8")).to.equal("new");
  });
});
