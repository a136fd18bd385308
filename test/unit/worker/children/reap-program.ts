// The start of a worker's host of children, with little patience, as a process of its own: its argument is the directory of the
// records. Says what it logs, and ends.
import { systemClock } from "../../../../src/base/clock.ts";
import { ChildHost } from "../../../../src/worker/children/child-host.ts";
import { Starter } from "../../../../src/worker/children/starter.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";

const REAP_LIMIT_MS = 300;

const [directory = ""] = process.argv.slice(2);
const log = new RecordingLogger();
const starter = new Starter();
const host = await ChildHost.open({
  directory,
  starter,
  clock: systemClock,
  log,
  reapLimitMs: REAP_LIMIT_MS,
});
for (const { message, fields } of log.lines) process.stdout.write(`${message} ${JSON.stringify(fields)}\n`);
await host.close();
await starter.close();
