// How slow this machine is just now, as a factor on protocol times that tests have shortened. Measured when it is first asked
// for and again every few seconds while tests run: how long a process takes to start, how late a timer is, how long the
// disk takes to sync. A quiet machine gives 1, so that nothing waits longer than it must there. Runs of mocha side by side measure
// the same machine: one of them does, and the others read from a file what it has seen.
import { spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  fsync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { systemClock } from "../../src/base/clock.ts";
import { parseDurationMs } from "../../src/config/duration.ts";

/** The same for every process that looks. */
interface MachineSample {
  readonly startMs: number;
  readonly syncMs: number;
}

interface Sample extends MachineSample {
  /** Measured by each process for itself. */
  readonly lateMs: number;
}

/** The environment's name of the file in which runs side by side leave their measurements of the machine. */
export const PACE_FILE = "TEST_PACE_FILE";

/** The limits of quiet: up to this the tests themselves bring a machine with two cores. An idle one takes 20 ms, 0.2 ms and 0.5 ms. */
const QUIET: Sample = { startMs: 120, lateMs: 30, syncMs: 30 };
/** Beyond this a test would take minutes; a machine as slow as that is no place to judge anything. */
const SLOWEST = 8;
const MEASURE_AGAIN_MS = 2_000;
const TIMER_MS = 20;
/** The slowest of these counts: trouble comes in bursts. */
const REMEMBERED = 8;
const NOTHING = ["-e", "0"];
/** A test may give its processes another one, and take that away. */
const TEMPORARY = tmpdir();

const samples: Sample[] = [];

/** 1 on a quiet machine, more on a busy one, in steps of a half. */
export function pace(): number {
  if (samples.length === 0) {
    samples.push(sampleAtOnce());
    void measureAgain();
  }
  const slowness = samples.map(({ startMs, lateMs, syncMs }) =>
    Math.max(startMs / QUIET.startMs, lateMs / QUIET.lateMs, syncMs / QUIET.syncMs),
  );
  return Math.min(SLOWEST, Math.max(1, Math.ceil(2 * Math.max(...slowness)) / 2));
}

const PROTOCOL_TIMES = ["liveness.", "ROLLOUT_LIVENESS_", "coordinator.", "ROLLOUT_COORDINATOR_"];

/** Settings with each duration under `liveness` and `coordinator` lengthened alike, so that their order stays. */
export function paced<Settings extends object>(settings: Settings, factor = pace()): Settings {
  const entries = Object.entries(settings).map(([key, value]: [string, unknown]) => {
    const isOfProtocol = PROTOCOL_TIMES.some((prefix) => key.startsWith(prefix));
    const ms = isOfProtocol && typeof value === "string" ? parseDurationMs(value) : undefined;
    return [key, ms === undefined ? value : `${Math.round(ms * factor)}ms`];
  });
  return Object.fromEntries(entries) as Settings;
}

/** Without a turn of the loop: the first settings are made before there is one. */
function sampleAtOnce(): Sample {
  const beganMs = performance.now();
  spawnSync(process.execPath, NOTHING, { env: {} });
  const startedMs = performance.now();
  const file = scratchFile();
  const openedMs = performance.now();
  fsyncSync(file);
  const syncMs = performance.now() - openedMs;
  closeSync(file);
  return { startMs: startedMs - beganMs, lateMs: 0, syncMs };
}

async function measureAgain(): Promise<void> {
  for (;;) {
    await sleep(MEASURE_AGAIN_MS, undefined, { ref: false });
    samples.push(await sample());
    if (samples.length > REMEMBERED) samples.shift();
  }
}

async function sample(): Promise<Sample> {
  const beganMs = performance.now();
  await sleep(TIMER_MS, undefined, { ref: false });
  const lateMs = performance.now() - beganMs - TIMER_MS;
  return { ...(measuredLately() ?? (await measureMachine())), lateMs };
}

async function measureMachine(): Promise<MachineSample> {
  const beganMs = performance.now();
  await startNothing();
  const startMs = performance.now() - beganMs;
  const file = scratchFile();
  const openedMs = performance.now();
  await promisify(fsync)(file);
  const syncMs = performance.now() - openedMs;
  closeSync(file);
  tellOthers({ startMs, syncMs });
  return { startMs, syncMs };
}

/** By another run, or by this one, since this one would have measured last. */
function measuredLately(): MachineSample | undefined {
  const file = process.env[PACE_FILE];
  if (file === undefined) return undefined;
  try {
    const { wallMs, ...measured } = JSON.parse(readFileSync(file, "utf8")) as MachineSample & {
      wallMs: number;
    };
    const agoMs = systemClock.wallMs() - wallMs;
    return agoMs >= 0 && agoMs < MEASURE_AGAIN_MS ? measured : undefined;
  } catch {
    return undefined;
  }
}

/** The file is replaced as a whole: whoever reads it meanwhile has the one before. */
function tellOthers(measured: MachineSample): void {
  const file = process.env[PACE_FILE];
  if (file === undefined) return;
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, JSON.stringify({ wallMs: systemClock.wallMs(), ...measured }));
  renameSync(unfinished, file);
}

/** The process does not keep a run of tests from ending, and has nothing by which a test looks for what it has left. */
function startNothing(): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, NOTHING, { stdio: "ignore", env: {} });
    child.unref();
    child.once("error", () => resolve());
    child.once("exit", () => resolve());
  });
}

/** A file with something to sync. It has no name any more: nothing of it is left when it is closed. */
function scratchFile(): number {
  const path = join(TEMPORARY, `rollout-pace-${process.pid}-${process.hrtime.bigint()}`);
  const file = openSync(path, "wx");
  unlinkSync(path);
  writeSync(file, "something");
  return file;
}
