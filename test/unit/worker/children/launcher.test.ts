import { expect } from "chai";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { text } from "node:stream/consumers";
import type { Child, ChildEnd, ChildRequest } from "../../../../src/worker/children/child.ts";
import { isRunning } from "../../../support/backend-rig.ts";
import { openChildHost } from "../../../support/child-host.ts";
import type { OpenedHost } from "../../../support/child-host.ts";
import { eventually } from "../../../support/eventually.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { environmentFor } from "../../../support/rollout-process.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

interface Said {
  readonly end: ChildEnd;
  readonly output: string;
  readonly errors: string;
  /** The process that has started it. */
  readonly parent: number;
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

describe("a launcher of commands", () => {
  let opened: OpenedHost;
  // Before the directory is gone.
  afterEach(() => opened.close());
  const directory = useTemporaryDirectory();
  const env = environmentFor();
  beforeEach(async () => {
    opened = await openChildHost(directory.file("records"), new RecordingLogger());
  });

  async function start(command: readonly string[], parts: Partial<ChildRequest> = {}): Promise<Child> {
    const request = { command, cwd: directory.path, env, input: Buffer.alloc(0), ...parts };
    const started = await opened.host.spawn(request);
    if (started.kind === "failed") throw new Error(started.failure.reason);
    return started.child;
  }

  /** Its end, when nothing of it is left. The script waits for a line, so that it can be looked at. */
  async function run(script: string, parts: Partial<ChildRequest> = {}): Promise<Said> {
    const gate = directory.file("gate");
    rmSync(gate, { force: true });
    const waiting = `while [ ! -e '${gate}' ]; do sleep 0.01; done; ${script}`;
    const child = await start(["/bin/sh", "-c", waiting], parts);
    const parent = parentOf(child.pid);
    writeFileSync(gate, "");
    const [output, errors, end] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    await child.kill(0);
    return { end, output, errors, parent };
  }

  it("starts one after the other by the same shell, and others beside them by others", async () => {
    const [first, second] = [await run("echo a"), await run("echo b")];
    expect([first.output, second.output]).to.deep.equal(["a\n", "b\n"]);
    expect(second.parent).to.equal(first.parent);
    expect(first.parent).to.not.equal(opened.starter.pid);
    const children = await Promise.all([start(["sleep", "600"]), start(["sleep", "600"])]);
    const parents = children.map(({ pid }) => parentOf(pid));
    expect(new Set(parents).size).to.equal(2);
    expect(parents).to.include(first.parent);
  });

  it("gives each a group of its own, its streams, and no other descriptor", async () => {
    const child = await start(["/bin/sh", "-c", "cut -d' ' -f5 /proc/self/stat; ls -l /proc/self/fd"]);
    const said = await text(child.stdout);
    expect(said.startsWith(`${child.pid}\n`)).to.equal(true);
    // The program that lists them has the list as 3.
    const inherited = [...said.matchAll(/ (\d+) -> (?:pipe|socket):/g)].map(([, number]) => Number(number));
    expect(inherited).to.deep.equal([0, 1, 2]);
    await child.kill(0);
  });

  it("gives it its words, its variables and its input to the byte, whatever is in them", async () => {
    const words = ["$HOME", "a b", "", "-n", "'\"\\", "\n", "😀ä\u0001", "$(true) `true` !x", "a=b", "*"];
    const child = await start(["printf", "<%s>", ...words]);
    expect(await text(child.stdout)).to.equal(words.map((word) => `<${word}>`).join(""));
    await child.kill(0);
    const input = Buffer.from([0, 255, 10, 0, 128, 13]);
    const value = "'\"$x \\ ä\n";
    const { output } = await run('printf %s "$ROLLOUT_X"; cat', { input, variables: { ROLLOUT_X: value } });
    expect(output).to.equal(value + input.toString());
    const large = Buffer.alloc(1_000_000, "x");
    expect((await run("wc -c", { input: large })).output.trim()).to.equal("1000000");
    expect((await run("exit 3", { input: large })).end).to.deep.equal({ code: 3, signal: null });
  });

  it("gives it the environment that was asked for", async () => {
    const child = await start(["env"], { variables: { ROLLOUT_ATTEMPT: "2" } });
    const names = [...(await text(child.stdout)).matchAll(/^([A-Za-z_]+)=/gm)].map(([, name]) => name);
    // Bash says how deep shells are, and what it executes.
    const said = names.filter((name) => name !== "_" && name !== "SHLVL");
    expect(said).to.have.members([...Object.keys(env), "PWD", "ROLLOUT_ATTEMPT"]);
    await child.kill(0);
    // Bash has a use of its own for it.
    const odd = { ...env, BASH_ENV: "/nonesuch", TMOUT: "1" };
    expect((await run('echo "$BASH_ENV $TMOUT"', { env: odd })).output).to.equal("/nonesuch 1\n");
    expect((await run('echo "$SHLVL"', { env: { ...env, SHLVL: "3" } })).output).to.equal("3\n");
  });

  it("has all that it writes, be it more than a pipe holds, at its end or while it runs on", async () => {
    const much = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2";
    const scripts = {
      [much]: [300_000, 200_000],
      "echo little": [7, 0],
      [`${much}; sleep 0.2; ${much}`]: [600_000, 400_000],
    };
    for (const [script, sizes] of Object.entries(scripts)) {
      const { output, errors, end } = await run(script);
      expect([output.length, errors.length, end.code]).to.deep.equal([...sizes, 0]);
    }
  });

  it("gives to the next one nothing of the environment of the one before", async () => {
    const script = 'echo "${ROLLOUT_KEY-none} ${ROLLOUT_ATTEMPT-none}"';
    const keyed = await run(script, { variables: { ROLLOUT_KEY: "17", ROLLOUT_ATTEMPT: "1" } });
    const plain = await run(script, { variables: { ROLLOUT_ATTEMPT: "2" } });
    expect([keyed.output, plain.output]).to.deep.equal(["17 1\n", "none 2\n"]);
    expect(plain.parent).to.equal(keyed.parent);
  });

  it("tells an exit from a death by a signal of the same number", async () => {
    for (const name of ["SIGHUP", "SIGINT", "SIGPIPE", "SIGTERM", "SIGKILL", "SIGSEGV", "SIGUSR1"] as const) {
      const number = constants.signals[name];
      expect((await run(`kill -${number} $$`)).end).to.deep.equal({ code: null, signal: name });
      expect((await run(`exit ${128 + number}`)).end).to.deep.equal({ code: 128 + number, signal: null });
    }
  });

  it("waits for one that was stopped for a while", async () => {
    const file = directory.file("stopped");
    const child = await start(["/bin/sh", "-c", `echo >'${file}'; kill -STOP $$; exit 5`]);
    await eventually("it stands still", () =>
      /^State:\s+T/m.test(readFileSync(`/proc/${child.pid}/status`, "utf8")),
    );
    process.kill(child.pid, "SIGCONT");
    expect(await child.exited).to.deep.equal({ code: 5, signal: null });
    await child.kill(0);
  });

  it("ends with it what it leaves in its group, and the shell that it is left in", async () => {
    const left = directory.file("left");
    const first = await run(`sleep 600 >/dev/null 2>&1 & echo $! >'${left}'`);
    const pid = Number(readFileSync(left, "utf8"));
    expect([first.end.code, isRunning(pid), isRunning(first.parent)]).to.deep.equal([0, false, false]);
    const { output, parent } = await run("echo again");
    expect(output).to.equal("again\n");
    expect(parent).to.not.equal(first.parent);
  });

  it("never gives the streams of one to another, when something that cannot be found holds them", async () => {
    const stray = directory.file("stray");
    const holds = `setsid sh -c 'echo $$ >"${stray}"; exec sleep 600' & while [ ! -e '${stray}' ]; do sleep 0.01; done`;
    const child = await start(["/bin/sh", "-c", holds]);
    await child.exited;
    await child.kill(0);
    expect((await run("echo clean")).output).to.equal("clean\n");
    const pid = Number(readFileSync(stray, "utf8"));
    if (isRunning(pid)) process.kill(pid, "SIGKILL");
  });

  it("says that nobody knows how one ended whose shell was killed, and goes on", async () => {
    const child = await start(["sleep", "600"]);
    process.kill(parentOf(child.pid), "SIGKILL");
    expect(await child.exited).to.deep.equal({ code: null, signal: null });
    await child.kill(0);
    expect(isRunning(child.pid)).to.equal(false);
    expect((await run("echo again")).output).to.equal("again\n");
  });

  it("ends one, and all that it started, with SIGTERM and after the grace with SIGKILL", async () => {
    const pids = directory.file("pids");
    const deaf = `trap '' TERM; sleep 600 & echo $! >'${pids}'; while :; do sleep 0.02; done`;
    const child = await start(["/bin/sh", "-c", deaf]);
    await eventually("it is deaf", () => existsSync(pids) && readFileSync(pids, "utf8").endsWith("\n"));
    await child.kill(50);
    expect((await child.exited).code).to.equal(null);
    expect([child.pid, Number(readFileSync(pids, "utf8"))].filter(isRunning)).to.deep.equal([]);
    const polite = await start(["/bin/sh", "-c", "trap 'exit 7' TERM; echo 1; while :; do sleep 0.02; done"]);
    await new Promise<void>((resolve) => void polite.stdout.once("data", () => resolve()));
    await polite.kill(600_000);
    expect(await polite.exited).to.deep.equal({ code: 7, signal: null });
  });

  it("lets nothing begin that may not, and uses the shell for the next", async () => {
    const { parent } = await run("true");
    const file = directory.file("ran");
    const request = { command: ["touch", file], cwd: directory.path, env, input: Buffer.from("x") };
    const refused = await opened.host.spawn({ ...request, mayBegin: () => false });
    expect(refused.kind === "failed" && refused.failure.kind).to.equal("withheld");
    const next = await run("cat");
    expect([next.output, next.parent, existsSync(file)]).to.deep.equal(["", parent, false]);
  });

  it("says of a program that the system cannot execute that it has not begun", async () => {
    const file = directory.file("program");
    writeFileSync(file, "#!/nonesuch\n");
    chmodSync(file, 0o700);
    const child = await start([file]);
    await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(await child.isUnbegun?.()).to.equal(true);
    await child.kill(0);
    const other = await start(["/bin/sh", "-c", "nonesuch"]);
    await Promise.all([text(other.stdout), text(other.stderr)]);
    expect(await other.isUnbegun?.()).to.equal(false);
    await other.kill(0);
  });

  it("starts elsewhere when its directory is another one by now", async () => {
    const place = directory.file("place");
    mkdirSync(place);
    expect((await run("pwd", { cwd: place })).output).to.equal(`${place}\n`);
    rmSync(place, { recursive: true });
    const gone = await opened.host.spawn({ command: ["true"], cwd: place, env, input: Buffer.alloc(0) });
    expect(gone.kind).to.equal("failed");
  });
});
