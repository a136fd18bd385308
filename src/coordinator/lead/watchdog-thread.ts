// The program of the watchdog's thread. It is loaded by src/coordinator/lead/watchdog.ts and by nobody else.
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../base/assert.ts";
import { blockThreadWhile, systemClock } from "../../base/clock.ts";
import { eventLine } from "../../observe/stdout-emitter.ts";
import { writeAllSync } from "../../observe/line-output.ts";
import type { WatchdogData, WatchPorts } from "./watchdog.ts";
import { watch } from "./watchdog.ts";

assert(parentPort !== null, "the watchdog is a thread of its own");
const { cells, runId, fd, graceMs } = workerData as WatchdogData;
parentPort.postMessage("watching");
const ports: WatchPorts = {
  nowMs: () => systemClock.monotonicMs(),
  waitWhile: blockThreadWhile,
  speak: (epoch) => {
    const reason = "the main thread is stuck, and the lease's deadline has passed";
    const line = eventLine(runId, systemClock.wallMs(), "coordinator_fenced", {
      ...{ epoch, seen_epoch: null, reason },
      ...{ refused_writes: null, refused_replies: null },
    });
    // The main thread may have been in the middle of a line.
    writeAllSync(fd, `\n${line}`);
  },
  abort: () => void process.kill(process.pid, "SIGABRT"),
};
watch(cells, ports, graceMs);
