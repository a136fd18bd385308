import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { Exposition } from "../../../../src/observe/metrics/exposition.ts";
import { Starter } from "../../../../src/worker/children/starter.ts";
import type { Child } from "../../../../src/worker/children/child.ts";
import { allGone, isRunning } from "../../../support/backend-rig.ts";
import { openOwnChildHost } from "../../../support/child-host.ts";
import type { OpenedHost } from "../../../support/child-host.ts";
import { eventually } from "../../../support/eventually.ts";
import { metricValues } from "../../../support/metric-values.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { environmentFor } from "../../../support/rollout-process.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const USER = fileURLToPath(new URL("./starter-user-program.ts", import.meta.url));
const SHORT = fileURLToPath(new URL("./starter-short-of-descriptors-program.ts", import.meta.url));
/** One death in the middle of a start did it nearly each time. */
const DEATHS = 4;

/** The pid of the starter of a program that is killed with -9 while it starts one process after another. */
async function killedWhileStarting(): Promise<number> {
  const user = spawn(process.execPath, [USER], {
    stdio: ["ignore", "pipe", "inherit"],
    env: environmentFor(),
  });
  const lines: string[] = [];
  const exited = once(user, "exit");
  createInterface({ input: user.stdout }).on("line", (line) => lines.push(line));
  await eventually("some starts", () => lines.length > 5);
  user.kill("SIGKILL");
  await exited;
  return Number(lines[0]);
}

describe("a starter", () => {
  let opened: OpenedHost;
  // Before the directory is gone.
  afterEach(() => opened.close());
  const directory = useTemporaryDirectory();
  beforeEach(async () => {
    opened = await openOwnChildHost(directory.file("records"), new RecordingLogger());
  });

  async function sleeper(): Promise<Child> {
    const command = ["sleep", "600"];
    const start = await opened.host.spawn({ command, cwd: directory.path, env: environmentFor() });
    if (start.kind === "failed") throw new Error(start.failure.reason);
    return start.child;
  }

  it("that dies is replaced; nobody knows how what it had started ended, and nothing of it is left", async () => {
    const first = await sleeper();
    const { pid: before = 0 } = opened.starter;
    process.kill(before, "SIGKILL");
    expect(await first.exited).to.deep.equal({ code: null, signal: null });
    await first.kill(0);
    expect(isRunning(first.pid)).to.equal(false);
    const second = await eventually("another start", () => sleeper().catch(() => undefined));
    expect(opened.starter.pid).to.not.equal(before);
    await second.kill(0);
    expect((await second.exited).signal).to.equal("SIGKILL");
  });

  it("counts what it has started, what could not be started, and how it ended", async () => {
    const spawn = async (...command: string[]): Promise<void> => {
      const start = await opened.host.spawn({ command, cwd: directory.path, env: environmentFor() });
      if (start.kind === "started") await start.child.exited;
    };
    await spawn("true");
    await spawn("false");
    await (await sleeper()).kill(0);
    await opened.starter.start({ file: "/nowhere", args: [], cwd: "/", env: {}, streams: ["ignore"] });
    await sleeper();
    const exposition = new Exposition();
    opened.starter.addMetrics(exposition);
    expect(metricValues(exposition.text)).to.deep.equal({
      // The guardian is one of them.
      rollout_worker_processes: 2,
      'rollout_worker_processes_started_total{result="started"}': 5,
      'rollout_worker_processes_started_total{result="failed"}': 1,
      'rollout_worker_processes_ended_total{end="clean"}': 1,
      'rollout_worker_processes_ended_total{end="failed"}': 2,
    });
  });

  it("ends with its worker, also when that is killed in the middle of a start", async () => {
    const pids = await Promise.all(Array.from({ length: DEATHS }, killedWhileStarting));
    await allGone(pids);
  });

  it("says that it cannot start, and breaks nothing, however few descriptors there are for a process of its own", async () => {
    const words = ["-c", 'ulimit -n 96 && exec "$0" "$@"', process.execPath, SHORT];
    const { stdout } = await promisify(execFile)("/bin/sh", words, { env: environmentFor() });
    const all = { ended: 24, hasFailed: true, hasStarted: true };
    expect(JSON.parse(stdout)).to.deep.equal(all);
  });

  it("is gone when it is closed in the middle of a start, which then says so", async () => {
    const starter = Starter.begin();
    const { pid = 0 } = starter;
    const streams = ["pipe", "pipe", "pipe", "pipe"] as const;
    const request = { file: "/bin/true", args: [], cwd: "/", env: {}, streams };
    const starts = Array.from({ length: 8 }, () => starter.start(request));
    await starter.close();
    await allGone([pid]);
    for (const start of await Promise.all(starts))
      if (start.kind === "started") start.process.streams.forEach((stream) => stream?.destroy());
  });

  it("is gone when it is closed", async () => {
    await (await sleeper()).kill(0);
    const { pid = 0 } = opened.starter;
    await opened.close();
    await allGone([pid]);
  });
});
