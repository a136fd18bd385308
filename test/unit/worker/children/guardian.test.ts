import { expect } from "chai";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { systemClock } from "../../../../src/base/clock.ts";
import { confine, findCgroupBase } from "../../../../src/worker/children/child-group.ts";
import type { GroupName } from "../../../../src/worker/children/child-group.ts";
import { Guardian } from "../../../../src/worker/children/guardian.ts";
import { Starter } from "../../../../src/worker/children/starter.ts";
import { findProcess } from "../../../../src/base/process-table.ts";
import { allGone, isRunning } from "../../../support/backend-rig.ts";
import { useClosers } from "../../../support/closers.ts";
import { eventually } from "../../../support/eventually.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";

describe("a guardian", () => {
  const onClose = useClosers();
  let guardian: Guardian;
  let starter: Starter;
  let log: RecordingLogger;
  beforeEach(() => {
    log = new RecordingLogger();
    starter = Starter.begin();
    guardian = new Guardian({ starter, clock: systemClock, log });
    onClose(async () => {
      guardian.close();
      await starter.close();
    });
  });

  /** A process that leads a group of its own. */
  function group(): GroupName {
    const started = spawn("sleep", ["600"], { stdio: "ignore", detached: true });
    const { pid = 0 } = started;
    onClose(() => void started.kill("SIGKILL"));
    return { pid, startedAt: findProcess(pid)?.startedAt ?? "" };
  }

  const theGuardian = (): Promise<number> => eventually("a guardian", () => guardian.pid);

  it("kills what it knows and has not been told to forget, when its input ends, and ends", async () => {
    const [one, two, forgotten, unknown] = [group(), group(), group(), group()];
    for (const each of [one, forgotten, two, one]) expect(await guardian.watch(each)).to.equal(true);
    guardian.forget(forgotten);
    guardian.forget(unknown);
    const pid = await theGuardian();
    guardian.close();
    await allGone([one.pid, two.pid, pid]);
    expect([forgotten.pid, unknown.pid].filter(isRunning)).to.deep.equal([forgotten.pid, unknown.pid]);
  });

  it("kills what is in a child's cgroup, wherever its session is, and removes the cgroup", async () => {
    const base = await findCgroupBase();
    const [child, stray] = [group(), group()];
    const isConfined = base !== undefined && (await confine(base, child));
    if (isConfined)
      writeFileSync(`${base}/rollout-${child.pid}-${child.startedAt}/cgroup.procs`, String(stray.pid));
    const confining = new Guardian({ starter, cgroupBase: base, clock: systemClock, log });
    await confining.watch(child);
    const pid = await eventually("a guardian", () => confining.pid);
    confining.close();
    await allGone([child.pid, pid]);
    expect(isRunning(stray.pid)).to.equal(!isConfined);
    if (isConfined) expect(existsSync(`${base}/rollout-${child.pid}-${child.startedAt}`)).to.equal(false);
  });

  it("does not kill a later process of the same number", async () => {
    const one = group();
    await guardian.watch({ pid: one.pid, startedAt: String(Number(one.startedAt) - 1) });
    const pid = await theGuardian();
    guardian.close();
    await allGone([pid]);
    expect(isRunning(one.pid)).to.equal(true);
  });

  it("is deaf to what ends a worker's session", async () => {
    const one = group();
    await guardian.watch(one);
    const pid = await theGuardian();
    // A shell ignores them from its first line on, one after the other, which it may not have come to.
    const deaf = 0x4003n;
    await eventually("it listens to none", () => {
      const ignored = /^SigIgn:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
      return (BigInt(`0x${ignored ?? "0"}`) & deaf) === deaf;
    });
    for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.kill(pid, signal);
    const two = group();
    await guardian.watch(two);
    expect([guardian.pid, log.lines]).to.deep.equal([pid, []]);
    guardian.close();
    await allGone([one.pid, two.pid]);
  });

  it("is replaced when it dies, by one that knows all that it did", async () => {
    const [one, forgotten] = [group(), group()];
    await guardian.watch(one);
    await guardian.watch(forgotten);
    const first = await theGuardian();
    process.kill(first, "SIGKILL");
    const second = await eventually("another guardian", () => guardian.pid !== first && guardian.pid);
    guardian.forget(forgotten);
    guardian.close();
    await allGone([one.pid, second]);
    expect(isRunning(forgotten.pid)).to.equal(true);
    expect(log.lines.map(({ message }) => message)).to.deep.equal([
      "the guardian of the children has died; another takes its place",
    ]);
  });

  it("that has died knows the group that came while nobody had noticed", async () => {
    const [one, two] = [group(), group()];
    await guardian.watch(one);
    const first = await theGuardian();
    process.kill(first, "SIGKILL");
    expect(await guardian.watch(two)).to.equal(true);
    await eventually("another guardian", () => guardian.pid !== first && guardian.pid);
    guardian.close();
    await allGone([one.pid, two.pid]);
  });
});
