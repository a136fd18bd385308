// A pool as somebody without rollout would write it: children that stay, each given the next line of a file as soon as it has answered, and a
// file of their answers. Nothing is kept of who has what, and nothing is synced. Prints how many items a second it got through.
// Arguments: the file with a JSON value a line, the file for the answers, how many children, how many answers come before it is
// measured, and the command of a child.
import { spawn } from "node:child_process";
import { createReadStream, createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/base/clock.ts";

const [input = "", output = "", children = "1", unmeasured = "0", program = "", ...args] =
  process.argv.slice(2);
const lines = createInterface({ input: createReadStream(input) })[Symbol.asyncIterator]();
const answers = createWriteStream(output);
let [given, answered, fromMs] = [0, 0, 0];

await Promise.all(Array.from({ length: Number(children) }, employ));
const seconds = (systemClock.monotonicMs() - fromMs) / 1_000;
answers.end();
process.stdout.write(
  `${JSON.stringify({ answered, perSecond: (answered - Number(unmeasured)) / seconds })}\n`,
);

/** Resolves when there is nothing left for it. */
async function employ(): Promise<void> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  child.stdin.write(`${JSON.stringify({ type: "hello", protocol: 1, concurrency: 1 })}\n`);
  await said.next();
  for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
    child.stdin.write(
      `{"type":"item","id":${++given},"attempt":1,"checkpoint":null,"payload":${line.value}}\n`,
    );
    const answer = await said.next();
    if (answer.done === true) throw new Error("a child of the plain pool has ended");
    answers.write(`${answer.value}\n`);
    if (++answered === Number(unmeasured)) fromMs = systemClock.monotonicMs();
  }
  child.stdin.end();
}
