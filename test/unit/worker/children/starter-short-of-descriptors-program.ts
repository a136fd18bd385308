// Asks a starter that has no process yet for one, with no descriptor left, then with one more each time. Says how many of the starts
// came to an end, and of these how many failed.
import { closeSync, openSync } from "node:fs";
import { Starter } from "../../../../src/worker/children/starter.ts";

/** More than a start needs. */
const FREE_MAX = 24;

const starters = Array.from({ length: FREE_MAX }, () => new Starter());
const taken: number[] = [];
try {
  for (;;) taken.push(openSync("/dev/null", "r"));
} catch {
  // There is none left.
}
let [ended, failed] = [0, 0];
for (const starter of starters) {
  const request = { file: "/bin/sh", args: ["-c", "read -r word"], cwd: "/", env: {} };
  const start = await starter.start({ ...request, streams: ["pipe", "ignore", "ignore"] });
  ended++;
  if (start.kind === "started") {
    for (const stream of start.process.streams) stream?.destroy();
    await start.process.exited;
  } else failed++;
  await starter.close();
  closeSync(taken.pop() ?? -1);
}
for (const descriptor of taken) closeSync(descriptor);
console.log(JSON.stringify({ ended, hasFailed: failed > 0, hasStarted: failed < ended }));
