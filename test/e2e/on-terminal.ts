// The built program on a terminal of its own, as `script` of util-linux makes one: what comes out is what a terminal would be
// given, byte for byte, standard error included.
import { spawn } from "node:child_process";
import { buffer } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { shellWords } from "../../src/cli/shell-words.ts";
import { environmentFor } from "../support/rollout-process.ts";

const BUILT_PROGRAM = fileURLToPath(new URL("../../bin/run.js", import.meta.url));

/** `typed` is there before the program reads it. */
export async function runOnTerminal(words: readonly string[], cwd: string, typed = ""): Promise<string> {
  const command = shellWords([process.execPath, BUILT_PROGRAM, ...words]);
  const child = spawn("script", ["-q", "-e", "-c", command, "/dev/null"], {
    cwd,
    env: { ...environmentFor(), SHELL: "/bin/sh", TERM: "xterm" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  if (typed === "") child.stdin.end();
  else child.stdin.write(typed);
  return (await buffer(child.stdout)).toString("utf8");
}
