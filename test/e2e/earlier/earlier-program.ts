// The program of the first version that kept a run on a Postgres, for the tests of one process.
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpackEarlier } from "./earlier-package.ts";

let unpacked: { readonly directory: string; readonly program: string } | undefined;

after(() => {
  if (unpacked !== undefined) rmSync(unpacked.directory, { recursive: true, force: true });
});

/** It is unpacked once for all tests: so it is compiled once too. */
export function earlierProgram(): string {
  if (unpacked === undefined) {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), "rollout-earlier-")));
    unpacked = { directory, program: unpackEarlier(directory) };
  }
  return unpacked.program;
}
