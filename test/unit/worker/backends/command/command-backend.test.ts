import { expect } from "chai";
import { chmodSync, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { CommandBackend } from "../../../../../src/worker/backends/command/command-backend.ts";
import type { CommandBackendOptions } from "../../../../../src/worker/backends/command/command-backend.ts";
import type { ChildStart } from "../../../../../src/worker/children/child.ts";
import { AT_ONCE } from "../../../../../src/worker/backends/backend.ts";
import type { ItemReport, Outcome } from "../../../../../src/worker/backends/backend.ts";
import { assignedItem } from "../../../../support/assigned-item.ts";
import { BackendRig, isRunning } from "../../../../support/backend-rig.ts";
import { eventually } from "../../../../support/eventually.ts";
import { useTemporaryDirectory } from "../../../../support/temporary-directory.ts";

describe("the command backend", () => {
  const rigs: BackendRig[] = [];
  afterEach(async () => {
    for (const rig of rigs.splice(0)) await rig.close();
  });
  const directory = useTemporaryDirectory();

  async function open(
    command: readonly string[],
    parts: Partial<CommandBackendOptions> = {},
  ): Promise<BackendRig> {
    const rig = await BackendRig.open(
      {
        open: (around) =>
          new CommandBackend({
            ...around,
            command,
            shell: false,
            cwd: around.directory,
            killGraceMs: 5_000,
            maxOutputBytes: 1_000_000,
            maxCheckpointBytes: 1_000,
            maxStateBytes: 1_000,
            checkpointIntervalMs: 20,
            directory: `${around.directory}/attempts`,
            ...parts,
          }),
      },
      directory.path,
    );
    rigs.push(rig);
    return rig;
  }

  const shell = (script: string, ...args: string[]): string[] => ["/bin/sh", "-c", script, "sh", ...args];

  async function outcomeOf(rig: BackendRig, payload = "{}"): Promise<string> {
    const { outcome } = await rig.run(Buffer.from(payload));
    if (outcome.kind === "success") return Buffer.from(outcome.output).toString();
    return "message" in outcome ? `${outcome.kind}: ${outcome.message ?? ""}` : outcome.kind;
  }

  describe("gives a command", () => {
    it("the payload on standard input, to the byte, and takes its output without its last newline", async () => {
      expect(await outcomeOf(await open(["cat"]), "a\nb")).to.equal("a\nb");
      expect(await outcomeOf(await open(shell("cat; echo; echo")), "a")).to.equal("a\n");
    });

    it("a payload that it does not read, however large", async () => {
      expect(await outcomeOf(await open(["echo", "hi"]), "x".repeat(1_000_000))).to.equal("hi");
    });

    it("the fields that it asks for, without a shell unless it is to be one", async () => {
      expect(await outcomeOf(await open(["echo", "{.a}; $HOME"]), '{"a":"1"}')).to.equal("1; $HOME");
      const rig = await open(["echo {.a} | tr a b"], { shell: true });
      expect(await outcomeOf(rig, '{"a":"a;a"}')).to.equal("b;b");
    });

    it("its item's environment beside its own", async () => {
      const rig = await open(shell('echo "$ROLLOUT_ATTEMPT $ROLLOUT_RUN_ID $MINE ${HOME-none}"'), {
        env: { MINE: "yes", PATH: process.env["PATH"] ?? "" },
      });
      expect(await outcomeOf(rig)).to.equal("1 the run yes none");
    });
  });

  it("makes the directory of its attempts again when somebody has removed it", async () => {
    const rig = await open(["cat"]);
    expect(await outcomeOf(rig, "a")).to.equal("a");
    rmSync(directory.file("attempts"), { recursive: true });
    expect(await outcomeOf(rig, "b")).to.equal("b");
  });

  describe("has a directory for the files of an attempt", () => {
    /** Says where it is, and does what its payload says. */
    const saying = shell('dirname "$ROLLOUT_CHECKPOINT"; eval "$(cat)"');

    it("that is the next one's when nothing was left there, with another file", async () => {
      const rig = await open(shell('echo "$ROLLOUT_CHECKPOINT"'));
      const [first, second] = [await outcomeOf(rig, "1"), await outcomeOf(rig, "2")];
      expect(dirname(second)).to.equal(dirname(first));
      expect(second).to.not.equal(first);
    });

    it("that nobody has again when something was left there", async () => {
      const rig = await open(saying);
      for (const leaving of ['touch "$ROLLOUT_CHECKPOINT"', 'mkdir -p "$ROLLOUT_CHECKPOINT.d/deep"']) {
        const before = await outcomeOf(rig, leaving);
        expect(existsSync(before)).to.equal(false);
        expect(await outcomeOf(rig, "true")).to.not.equal(before);
      }
    });

    it("that nobody else has meanwhile", async () => {
      const rig = await open(saying);
      await outcomeOf(rig, "true");
      const ends = [1, 2].map((number) =>
        outcomeOf(rig, `touch runs-${number}; while [ ! -e gate ]; do sleep 0.01; done`),
      );
      await eventually("both run", () =>
        [1, 2].every((number) => existsSync(directory.file(`runs-${number}`))),
      );
      writeFileSync(directory.file("gate"), "");
      const [first, second] = await Promise.all(ends);
      expect(first).to.not.equal(second);
    });
  });

  describe("says of a command", () => {
    it("that fails its exit code and the last that it said", async () => {
      const rig = await open(shell("echo one >&2; echo 'token: two' >&2; echo >&2; exit 7"));
      expect(await outcomeOf(rig)).to.equal("error: exit code 7: token: two");
      expect(await outcomeOf(await open(["false"]))).to.equal("error: exit code 1");
    });

    it("that is killed by what, with what it may mean", async () => {
      expect(await outcomeOf(await open(shell("kill -SEGV $$")))).to.equal("crash: killed by SIGSEGV");
      expect(await outcomeOf(await open(shell("kill -9 $$")))).to.equal(
        "crash: killed by SIGKILL (perhaps the machine ran out of memory)",
      );
      expect(await outcomeOf(await open(shell("sh -c 'kill -9 $$'; exit $?")))).to.include(
        "error: exit code 137 (a shell's word for SIGKILL; perhaps the machine ran out of memory)",
      );
    });

    it("an item's own mistake: no such field, an argument that cannot be one", async () => {
      const rig = await open(["echo", "{.a}"]);
      expect(await outcomeOf(rig, "{}")).to.equal("error: the item has no field a");
      expect(await outcomeOf(rig, JSON.stringify({ a: "x".repeat(200_000) }))).to.equal(
        "error: its arguments and environment are longer than the system allows",
      );
      expect(await outcomeOf(rig, '{"a":"\\u0000"}')).to.match(/^error: .*NUL/);
      expect(rig.broken).to.deep.equal([]);
    });

    it("whose program an item names that it is not there", async () => {
      const rig = await open(["{.program}"]);
      expect(await outcomeOf(rig, '{"program":"nonesuch"}')).to.match(/^error: the program nonesuch/);
      expect(await outcomeOf(rig, '{"program":"true"}')).to.equal("");
    });
  });

  describe("that is broken", () => {
    for (const [what, command, reason] of [
      ["is not there", ["nonesuch"], /^the program nonesuch: no directory of the PATH has it$/],
      ["may not be executed", ["./plain"], /^the program \.\/plain: it may not be executed/],
      ["has an interpreter that is not there", ["./script"], /^the program .*script cannot be executed$/],
    ] as const)
      it(`because its program ${what} charges no item and says why, once`, async () => {
        writeFileSync(directory.file("plain"), "");
        writeFileSync(directory.file("script"), "#!/nonesuch\n");
        chmodSync(directory.file("script"), 0o700);
        const rig = await open(command);
        const given = [rig.give(Buffer.from("1")), rig.give(Buffer.from("2"))];
        await eventually("it is said", () => rig.broken.length > 0);
        expect(rig.broken[0]).to.match(reason);
        rig.executor.drain();
        await rig.executor.abandon(5_000);
        const ends = await Promise.all(given.map((one) => rig.end(one)));
        expect(ends.map(({ outcome }) => outcome.kind)).to.deep.equal(["preempted", "preempted"]);
        expect(rig.broken.length).to.equal(1);
      });

    it("because its directory is not there says so", async () => {
      const rig = await open(["true"], { cwd: "/nonesuch" });
      rig.give(Buffer.from("1"));
      await eventually("it is said", () => rig.broken.length > 0);
      expect(rig.broken).to.deep.equal(["the working directory /nonesuch: it does not exist"]);
    });
  });

  it("waits where the machine has no room for a process, and charges no item", async () => {
    let refusals = 2;
    const rig = await open(["echo", "hi"], {
      children: {
        spawn: (request): Promise<ChildStart> =>
          refusals-- > 0
            ? Promise.resolve({ kind: "failed", failure: { kind: "exhausted", reason: "full" } })
            : rig.children.spawn(request),
      },
    });
    expect(await outcomeOf(rig)).to.equal("hi");
    expect(refusals).to.equal(-1);
  });

  describe("with a checkpoint file", () => {
    const attempt = (checkpoint = ""): Parameters<CommandBackend["execute"]>[0] => ({
      ...assignedItem(1),
      env: {},
      checkpoint: Buffer.from(checkpoint),
    });

    async function preempt(script: string, checkpoint = ""): Promise<Outcome> {
      const rig = await open(shell(script));
      const ending = new AbortController();
      const outcome = rig.backend.execute(attempt(checkpoint), ending.signal, () => undefined);
      await eventually("it runs", () => existsSync(directory.file("running")));
      ending.abort();
      return outcome;
    }

    const WAIT = "touch running; while :; do sleep 0.02; done";

    it("gives what a command leaves there to the next attempt, and what is there to this one", async () => {
      const script = `trap 'echo "$(cat "$ROLLOUT_CHECKPOINT")+" > "$ROLLOUT_CHECKPOINT"; exit 0' TERM; ${WAIT}`;
      const outcome = await preempt(script, "one");
      expect(outcome.kind === "preempted" && Buffer.from(outcome.checkpoint ?? []).toString()).to.equal(
        "one+\n",
      );
      expect(readdirSync(directory.file("attempts"))).to.deep.equal([]);
    });

    it("has no file where there is no checkpoint, and nothing new when the command leaves nothing", async () => {
      const script = `[ -e "$ROLLOUT_CHECKPOINT" ] || touch absent; ${WAIT}`;
      expect(await preempt(script)).to.deep.equal({ kind: "preempted" });
      expect(existsSync(directory.file("absent"))).to.equal(true);
    });

    it("gives what was saved on the way, though the command does not end in time", async () => {
      const rig = await open(shell(`trap '' TERM; printf saved > "$ROLLOUT_CHECKPOINT"; ${WAIT}`));
      const given = rig.give(Buffer.from("1"));
      await eventually("it runs", () => existsSync(directory.file("running")));
      rig.executor.drain();
      await rig.executor.abandon(500);
      const { checkpoint } = await rig.end(given);
      expect(Buffer.from(checkpoint).toString()).to.equal("saved");
    });

    it("tells of what the command leaves there while it runs", async () => {
      const rig = await open(shell(`printf early > "$ROLLOUT_CHECKPOINT"; ${WAIT}`));
      const given = rig.give(Buffer.from("1"));
      const saved = (): string => Buffer.from(rig.executor.saved[0]?.checkpoint ?? []).toString();
      await eventually("it is told", () => saved() === "early");
      rig.executor.drop(given.key);
    });

    for (const [kind, script] of [
      ["error", "exit 3"],
      ["crash", "kill -9 $$"],
    ] as const)
      it(`gives what was saved before an end by ${kind}`, async () => {
        const rig = await open(shell(`printf saved > "$ROLLOUT_CHECKPOINT"; ${script}`), {
          checkpointIntervalMs: 60_000,
        });
        const { outcome, checkpoint } = await rig.run(Buffer.from("1"));
        expect([outcome.kind, Buffer.from(checkpoint).toString()]).to.deep.equal([kind, "saved"]);
      });

    it("leaves out one over the limit, and what is no file", async () => {
      const large = `head -c 2000 /dev/zero > "$ROLLOUT_CHECKPOINT"; ${WAIT}`;
      expect(await preempt(large)).to.deep.equal({ kind: "preempted" });
      const pipe = `mkfifo "$ROLLOUT_CHECKPOINT"; ${WAIT}`;
      expect(await preempt(pipe)).to.deep.equal({ kind: "preempted" });
    });
  });

  describe("told to end", () => {
    it("counts no exit code 0 as a success that comes after", async () => {
      const rig = await open(
        shell("trap 'echo half; exit 0' TERM; touch running; while :; do sleep 0.02; done"),
      );
      const given = rig.give(Buffer.from("1"));
      await eventually("it runs", () => existsSync(directory.file("running")));
      rig.executor.drain();
      await rig.executor.abandon(5_000);
      expect((await rig.end(given)).outcome.kind).to.equal("preempted");
    });

    it("at once, leaves no time for it", async () => {
      const rig = await open(shell("trap 'touch heard' TERM; touch running; while :; do sleep 0.02; done"));
      const ending = new AbortController();
      const reports: ItemReport[] = [];
      const attempt = { ...assignedItem(1), env: {} };
      const outcome = rig.backend.execute(attempt, ending.signal, (one) => void reports.push(one));
      await eventually("it runs", () => existsSync(directory.file("running")));
      ending.abort(AT_ONCE);
      expect([(await outcome).kind, existsSync(directory.file("heard"))]).to.deep.equal(["preempted", false]);
    });
  });

  it("ends what a command leaves in the background, and waits for its last output", async () => {
    const rig = await open(shell("sleep 600 >/dev/null 2>&1 & echo $!"));
    expect(isRunning(Number(await outcomeOf(rig)))).to.equal(false);
    const late = await open(shell("(sleep 0.1; echo late) & echo early"));
    expect(await outcomeOf(late)).to.equal("early\nlate");
  });
});
