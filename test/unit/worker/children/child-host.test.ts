import { expect } from "chai";
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Child, ChildRequest, ChildStart } from "../../../../src/worker/children/child.ts";
import type { ChildHost } from "../../../../src/worker/children/child-host.ts";
import { bootId, findProcess } from "../../../../src/base/process-table.ts";
import { allGone, isRunning } from "../../../support/backend-rig.ts";
import { openChildHost } from "../../../support/child-host.ts";
import type { OpenedHost } from "../../../support/child-host.ts";
import { eventually } from "../../../support/eventually.ts";
import { withFailingCalls } from "../../../support/failing-system-calls.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { environmentFor } from "../../../support/rollout-process.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

describe("a host of children", () => {
  let host: ChildHost;
  let opened: OpenedHost;
  let log: RecordingLogger;
  // Before the directory is gone.
  afterEach(() => opened.close());
  const directory = useTemporaryDirectory();
  beforeEach(async () => {
    log = new RecordingLogger();
    opened = await openHost();
    ({ host } = opened);
  });

  const openHost = (): Promise<OpenedHost> => openChildHost(directory.file("records"), log);
  const records = (): string[] => readdirSync(directory.file("records"));
  const spawnIt = (command: readonly string[], parts: Partial<ChildRequest> = {}): Promise<ChildStart> =>
    host.spawn({ command, cwd: directory.path, env: environmentFor(), ...parts });

  async function started(...command: string[]): Promise<Child> {
    const start = await spawnIt(command);
    if (start.kind === "failed") throw new Error(start.failure.reason);
    start.child.stderr.resume();
    return start.child;
  }

  /** A shell that runs the script, and says the pids that it wants to. */
  async function script(source: string): Promise<{ child: Child; pids: number[] }> {
    const child = await started("/bin/sh", "-c", source);
    let said = "";
    child.stdout.on("data", (chunk) => (said += String(chunk)));
    await eventually("it says its pids", () => said.endsWith("\n"));
    return { child, pids: said.trim().split(" ").map(Number) };
  }

  it("loses nothing of one that has ended before anybody reads", async () => {
    const child = await started("echo", "hi");
    await child.exited;
    await child.kill(0);
    expect(await text(child.stdout)).to.equal("hi\n");
  });

  it("gives each a session and a group of its own, and only what it is to have", async () => {
    const child = await started("/bin/sh", "-c", "ls /proc/self/fd; cut -d' ' -f5,6 /proc/self/stat; env");
    const said = await text(child.stdout);
    // The program that lists them has the list as 3.
    expect(said)
      .to.match(/^0\n1\n2\n/)
      .and.not.include("\n4\n");
    expect(said).to.include(`${child.pid} ${child.pid}\n`);
    const names = [...said.matchAll(/^([A-Za-z_]+)=/gm)].map(([, name]) => name);
    expect(names).to.have.members([...Object.keys(environmentFor()), "PWD"]);
    await child.kill(0);
  });

  it("gives one that asks for it a channel beside the standard streams", async () => {
    const start = await spawnIt(["/bin/sh", "-c", 'read -r line <&4; echo "got $line" >&4'], {
      channel: true,
    });
    if (start.kind === "failed") throw new Error(start.failure.reason);
    const { channel } = start.child;
    if (channel === undefined) throw new Error("it has none");
    channel.write("this\n");
    expect(await text(channel)).to.equal("got this\n");
    await start.child.kill(0);
  });

  it("tells the words that it was given apart from a shell's", async () => {
    const child = await started("printf", "<%s>", "$HOME", "a b", "", "-n", "'\"");
    expect(await text(child.stdout)).to.equal("<$HOME><a b><><-n><'\">");
    await child.kill(0);
  });

  describe("says why it cannot start one:", () => {
    const failureOf = async (...args: Parameters<typeof spawnIt>): Promise<unknown> => {
      const start = await spawnIt(...args);
      return start.kind === "failed" && [start.failure.kind, start.failure.reason];
    };

    it("the program is not there, or no program", async () => {
      writeFileSync(directory.file("plain"), "");
      expect(await failureOf(["nonesuch"])).to.deep.equal([
        "unusable",
        "the program nonesuch: no directory of the PATH has it",
      ]);
      expect(await failureOf(["./nonesuch"])).to.deep.equal([
        "unusable",
        "the program ./nonesuch: it does not exist",
      ]);
      expect(await failureOf(["./plain"])).to.deep.equal([
        "unusable",
        `the program ./plain: it may not be executed (${directory.file("plain")})`,
      ]);
      expect(await failureOf([""])).to.deep.equal(["unusable", "the command is empty"]);
      expect(await failureOf(["true"], { cwd: directory.file("plain") })).to.deep.equal([
        "unusable",
        `the working directory ${directory.file("plain")}: it is not a directory`,
      ]);
    });

    it("what was found once is not there any more", async () => {
      const file = directory.file("program");
      writeFileSync(file, "#!/bin/sh\nexit 0\n");
      chmodSync(file, 0o700);
      const child = await started(file);
      await child.kill(0);
      writeFileSync(file, "#!/nonesuch\n");
      expect(await failureOf([file])).to.deep.equal(["unusable", `the program ${file} cannot be executed`]);
    });

    it("the arguments are too long, or have a NUL byte", async () => {
      expect(await failureOf(["echo", "x".repeat(200_000)])).to.deep.equal([
        "refused",
        "its arguments and environment are longer than the system allows",
      ]);
      expect(await failureOf(["echo", "a\0"])).to.deep.equal([
        "refused",
        "an argument or a variable of its environment has a NUL byte",
      ]);
    });

    it("its record cannot be written; then nothing of it has run", async () => {
      execFileSync("rm", ["-r", directory.file("records")]);
      writeFileSync(directory.file("records"), "");
      expect(await failureOf(["touch", directory.file("ran")])).to.deep.equal([
        "exhausted",
        "no record of it can be written: a part of the path is not a directory",
      ]);
      expect(existsSync(directory.file("ran"))).to.equal(false);
      execFileSync("rm", [directory.file("records")]);
    });
  });

  describe("ends one", () => {
    it("with SIGTERM, when that is enough", async () => {
      const { child } = await script("trap 'exit 7' TERM; echo 1; while :; do sleep 0.02; done");
      await child.kill(10_000);
      expect(await child.exited).to.deep.equal({ code: 7, signal: null });
    });

    it("with SIGKILL after the grace, or sooner when another call says so", async () => {
      const deaf = "trap '' TERM; echo 1; while :; do sleep 0.02; done";
      const first = await script(deaf);
      await first.child.kill(50);
      expect((await first.child.exited).signal).to.equal("SIGKILL");
      const second = await script(deaf);
      const slow = second.child.kill(600_000);
      await second.child.kill(0);
      await slow;
      expect((await second.child.exited).signal).to.equal("SIGKILL");
    });

    it("with all that it started, jobs in groups of their own and a deaf one too", async () => {
      // A shell with job control, as dash has it only on a terminal.
      const job = "bash -c 'set -m; sleep 600 >/dev/null 2>&1 & echo $!'";
      const { child, pids } = await script(
        `(trap '' TERM; exec sleep 600) & a=$!; b=$(${job}); echo $a $b; exec sleep 600`,
      );
      expect(pids.every(isRunning)).to.equal(true);
      await child.kill(100);
      expect([child.pid, ...pids].filter(isRunning)).to.deep.equal([]);
    });

    it("that has ended, with what it left in its group", async () => {
      const { child, pids } = await script("sleep 600 & echo $!");
      await child.exited;
      await child.kill(0);
      expect(pids.filter(isRunning)).to.deep.equal([]);
    });
  });

  it("ends what has left its session with a cgroup, where it may make one", async () => {
    const file = directory.file("stray");
    const { child } = await script(
      `setsid sh -c 'echo $$ >${file}; exec sleep 600' >/dev/null 2>&1 & echo 1; sleep 600`,
    );
    const stray = Number(
      await eventually("the stray", () => existsSync(file) && readFileSync(file, "utf8").trim()),
    );
    await child.kill(0);
    expect(isRunning(stray)).to.equal(host.cgroupBase === undefined);
    if (host.cgroupBase === undefined) process.kill(stray, "SIGKILL");
    else
      expect(
        readdirSync(host.cgroupBase).filter((name) => name.startsWith(`rollout-${child.pid}-`)),
      ).to.deep.equal([]);
  });

  it("knows each by a record until nothing is left of it", async () => {
    const { child, pids } = await script("sleep 600 & echo $!");
    await child.exited;
    expect(pids.every(isRunning)).to.equal(true);
    expect(records()).to.have.length(1);
    await child.kill(0);
    await eventually("its record is gone", () => records().length === 0);
  });

  it("ends all of them when it is closed, and its guardian", async () => {
    const { pids } = await script("sleep 600 & echo $$ $!; wait");
    const { guardianPid = 0 } = host;
    expect(isRunning(guardianPid)).to.equal(true);
    await host.close();
    await allGone([...pids, guardianPid]);
    expect(records()).to.deep.equal([]);
  });

  describe("that starts", () => {
    const record = (pid: number, startedAt: string, boot = bootId()): void =>
      writeFileSync(directory.file(`records/${pid}-${startedAt}-${boot}`), "");

    function bystander(): { pid: number; startedAt: string; kill: () => void } {
      const process = spawn("sleep", ["600"], { stdio: "ignore", detached: true });
      const { pid = 0 } = process;
      return { pid, startedAt: findProcess(pid)?.startedAt ?? "", kill: () => void process.kill("SIGKILL") };
    }

    it("reaps the very processes that were written down, and says so", async () => {
      const { pid, startedAt } = bystander();
      record(pid, startedAt);
      await (await openHost()).close();
      expect([isRunning(pid), records()]).to.deep.equal([false, []]);
      expect(log.lines.map(({ message }) => message)).to.deep.equal([
        "ended processes that an earlier start of this worker left",
      ]);
    });

    it("reaps what is left of a group whose leader has ended", async () => {
      const { child, pids } = await script("sleep 600 & echo $!");
      await child.exited;
      const [name = ""] = records();
      const other = await openHost();
      expect([pids.filter(isRunning), name.startsWith(`${child.pid}-`)]).to.deep.equal([[], true]);
      await other.close();
    });

    it("goes on when one of them cannot be ended, says so, and tries it again at the next start", async () => {
      const { pid, startedAt, kill } = bystander();
      record(pid, startedAt);
      // Nobody's child, whatever is written down.
      record(1, findProcess(1)?.startedAt ?? "1");
      // As the system answers for a process of another user.
      const program = fileURLToPath(new URL("./reap-program.ts", import.meta.url));
      const wrapper = withFailingCalls({ call: "kill", error: "EPERM", which: "1+" });
      const [command, ...words] = [...wrapper, process.execPath, program, directory.file("records")];
      const said = execFileSync(command, words, { encoding: "utf8", timeout: 60_000 });
      expect(said).to.include(`cannot be ended, and may still execute items {"pids":"${pid}"}`);
      expect([isRunning(pid), records().length]).to.deep.equal([true, 1]);
      await (await openHost()).close();
      expect([isRunning(pid), records()]).to.deep.equal([false, []]);
      kill();
    });

    it("lets a later process of the same number live, and one of another boot", async () => {
      const { pid, startedAt, kill } = bystander();
      record(pid, String(Number(startedAt) - 1));
      record(pid, startedAt, "another-boot");
      writeFileSync(directory.file("records/strange"), "");
      await (await openHost()).close();
      expect([isRunning(pid), records(), log.lines]).to.deep.equal([true, [], []]);
      kill();
    });
  });

  it("keeps the memory of its guardian below 8 MiB", async () => {
    await script("echo 1; sleep 600");
    const status = readFileSync(`/proc/${host.guardianPid ?? 0}/status`, "utf8");
    expect(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1])).to.be.lessThan(8_192);
  });
});
