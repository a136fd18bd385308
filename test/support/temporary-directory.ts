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

/**
 * To be called in a `describe`: makes the directory before each test, and removes it with all that is in it after. Things that are
 * open in there are closed before that if `useClosers` is called first.
 */
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

/** Gives `use` a directory of its own, and removes it with all that is in it. */
export async function withDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "rollout-test-")));
  try {
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The same for processes that a test starts in there: all are ended, and a failure shows what they said. */
export function withProcesses<Place extends { end(): Promise<void>; describe(): string }>(
  open: (directory: string) => Place,
  use: (place: Place) => Promise<void>,
): Promise<void> {
  return withDirectory(async (directory) => {
    const place = open(directory);
    try {
      await use(place);
    } catch (error) {
      // The error itself, for mocha's sake, which prints its stack.
      if (error instanceof Error) error.stack = `${error.stack ?? ""}\n\n${place.describe()}`;
      throw error;
    } finally {
      await place.end();
    }
  });
}
