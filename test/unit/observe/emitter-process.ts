// A process that only emits events to its standard output, for tests with a real pipe. Arguments: how many, the size of the
// buffer in bytes, and whether `now` is said at the end. Its complaints go to standard error.
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import type { RunId } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { createLog } from "../../../src/observe/winston-log.ts";
import { StdoutJsonEmitter } from "../../../src/observe/stdout-emitter.ts";

const [count, limitBytes, last] = process.argv.slice(2);
const log = createLog({
  stream: process.stderr,
  clock: systemClock,
  level: "info",
  format: "json",
  colour: false,
  limitBytes: 65_536,
});
const emitter = new StdoutJsonEmitter({
  stream: process.stdout,
  fd: 1,
  runId: newUlid<RunId>(systemClock, systemRandom),
  clock: systemClock,
  log: log.logger,
  hide: [],
  limitBytes: Number(limitBytes),
});
const turn = (): Promise<void> => new Promise((resolve) => systemClock.nextTurn(resolve));
for (let at = 0; at < Number(count); at++) {
  emitter.emit("worker_removed", { worker_id: `w${at}` });
  if (at % 100 === 0) await turn();
}
if (last === "now") {
  const refused = { refused_writes: 0, refused_replies: 0 };
  emitter.emitNow("coordinator_fenced", { epoch: 1, seen_epoch: 2, reason: "a test", ...refused });
}
log.logger.info("emitted");
await emitter.close(20_000);
// Garbage is not counted: chance says how much of it there is.
gc?.();
log.logger.info("ended", { heapMiB: Math.round(process.memoryUsage().heapUsed / 2 ** 20) });
await log.close();
