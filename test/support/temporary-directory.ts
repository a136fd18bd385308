// A directory of its own for each test, under the system's place for such, and gone after the test.
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryDirectory {
  /** Its real path. Only within a test. */
  readonly path: string;
  /** The path of something in it. */
  file(name: string): string;
}

/** To be called in a `describe`: makes the directory before each test, and removes it with all that is in it after. */
export function useTemporaryDirectory(): TemporaryDirectory {
  let path = "";
  beforeEach(async () => {
    path = await realpath(await mkdtemp(join(tmpdir(), "rollout-test-")));
  });
  afterEach(async () => {
    await rm(path, { recursive: true, force: true });
  });
  return {
    get path() {
      return path;
    },
    file: (name) => join(path, name),
  };
}
