import { stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { errnoOf } from "../../../src/base/errors.ts";
import { makeDirectory } from "../../../src/base/file-system.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

describe("making a directory", () => {
  const directory = useTemporaryDirectory();

  it("makes its parents, for this user alone, and leaves what is there", async () => {
    const path = directory.file("a/b/c");
    await makeDirectory(path);
    await makeDirectory(path, 0o755);
    expect((await stat(path)).mode & 0o777).to.equal(0o700);
  });

  it("rejects where nothing can be made, instead of never returning", async () => {
    let refused: unknown;
    await makeDirectory("/proc/x/y").catch((error: unknown) => (refused = error));
    expect(errnoOf(refused)).to.equal("ENOENT");
  });

  it("rejects where a file is in the way", async () => {
    await writeFile(directory.file("file"), "");
    let refused: unknown;
    await makeDirectory(directory.file("file")).catch((error: unknown) => (refused = error));
    expect(errnoOf(refused)).to.equal("EEXIST");
  });
});
