// The contract of every backend as a suite, run against each implementation in a real executor by a file of
// two lines. A backend leaves out cases that it cannot offer to items; the items themselves are in support/item-behaviour.ts.
import { expect } from "chai";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir } from "node:fs/promises";
import type { Readable } from "node:stream";
import { systemClock } from "../../src/base/clock.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import type { Backend } from "../../src/worker/backends/backend.ts";
import type { Assigned } from "../../src/worker/work/backlog.ts";
import type { Finished } from "../../src/worker/work/execution.ts";
import { resultOf } from "../../src/worker/work/outbox-record.ts";
import type { BackendCase } from "../support/backend-case.ts";
import { OUTPUT_LIMIT, STATE_LIMIT } from "../support/backend-case.ts";
import { allGone, BackendRig, isRunning, pidsIn, recordsIn } from "../support/backend-rig.ts";
import { eventually } from "../support/eventually.ts";
import type { ItemBehaviour } from "../support/item-behaviour.ts";
import { GARBLED, openFiles } from "../support/item-behaviour.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { environmentFor } from "../support/rollout-process.ts";
import type { TemporaryDirectory } from "../support/temporary-directory.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

export function backendContract(backendCase: BackendCase): void {
  describe(`backend contract: ${backendCase.name}`, () => {
    // Real programs start, more than one at a time.
    let rig: BackendRig;
    // Before the directory is gone.
    afterEach(async () => {
      await rig.close();
      expect(await readdir(recordsIn(directory.path)), "records of children").to.deep.equal([]);
      expect(rig.broken).to.deep.equal([]);
    });
    const directory = useTemporaryDirectory();
    beforeEach(async () => {
      rig = await BackendRig.open(backendCase, directory.path);
    });

    if (backendCase.can.has("list"))
      it("gives its processes nothing of a database that is open, nor of any other file", async () => {
        const path = directory.file("database");
        const store = await openLevelStore({
          ...{ path, holderName: "the test", clock: systemClock, log: new RecordingLogger() },
        });
        const other = await BackendRig.open(backendCase, await mkdtemp(directory.file("other-")));
        try {
          const { outcome } = await other.run({ do: "list" });
          expect(openFiles(process.pid)).to.include(`${path}/LOCK`);
          expect(
            outcome.kind === "success" && JSON.parse(Buffer.from(outcome.output).toString()),
          ).to.deep.equal([]);
        } finally {
          await other.close();
          await store.close();
        }
      });

    const suite: Suite = { backendCase, directory, rig: () => rig };
    outcomeTests(suite);
    if (backendCase.can.has("hang")) endTests(suite);
    if (backendCase.can.has("save")) checkpointTests(suite);
    if (backendCase.can.has("learn")) stateTests(suite);
    if (backendCase.executesIn === "children") orphanTests(suite);
  });
}

interface Suite {
  readonly backendCase: BackendCase;
  readonly directory: TemporaryDirectory;
  readonly rig: () => BackendRig;
}

function outcomeTests({ backendCase, directory, rig }: Suite): void {
  const { can, garbled = "kept" } = backendCase;
  const outputOf = backendCase.outputOf ?? ((value) => Buffer.from(JSON.stringify(value)));

  it("gives back what the item made, and works again and again", async () => {
    for (const value of [{ n: 1 }, "zwei 😀", [3, null]]) {
      const item: ItemBehaviour = { do: "echo", value };
      const { outcome } = await rig().run(item);
      const output = Buffer.from(outputOf(value, Buffer.from(JSON.stringify(item))));
      expect(outcome.kind === "success" && Buffer.from(outcome.output)).to.deep.equal(output);
    }
  });

  if (can.has("fail"))
    it("says what an item said no with", async () => {
      const { outcome } = await rig().run({ do: "fail", words: "not with me" });
      expect(outcome.kind === "error" && outcome.message).to.include("not with me");
    });

  if (can.has("crash"))
    it("says of an item that dies that it crashed, and goes on", async () => {
      const { outcome } = await rig().run({ do: "crash" });
      expect(outcome.kind === "crash" && outcome.message).to.include("SIGKILL");
      expect((await rig().run({ do: "echo", value: 1 })).outcome.kind).to.equal("success");
    });

  if (can.has("big"))
    it("lets an output of the limit through, and no byte more", async () => {
      const { outcome } = await rig().run({ do: "big", bytes: OUTPUT_LIMIT });
      expect(outcome.kind === "success" && outcome.output.length).to.equal(OUTPUT_LIMIT);
      for (const bytes of [OUTPUT_LIMIT + 1, 100 * OUTPUT_LIMIT])
        expect((await rig().run({ do: "big", bytes })).outcome.kind).to.equal("too_large");
      expect((await rig().run({ do: "echo", value: 1 })).outcome.kind).to.equal("success");
    });

  if (can.has("garble"))
    it(`an output that is not UTF-8 is ${garbled === "kept" ? "given back as it is" : "an error"}`, async () => {
      const { outcome } = await rig().run({ do: "garble" });
      expect(outcome.kind).to.equal(garbled === "kept" ? "success" : "error");
      if (outcome.kind === "success") expect(Buffer.from(outcome.output)).to.deep.equal(GARBLED);
    });

  if (can.has("complain"))
    it("keeps what an item wrote to standard error, and only there", async () => {
      const { outcome, log } = await rig().run({ do: "complain", words: "ach weh" });
      expect(Buffer.from(log).toString()).to.equal("ach weh\n");
      expect(outcome.kind === "success" && Buffer.from(outcome.output).toString()).to.equal('"ach weh"');
    });

  if (can.has("meet"))
    it("executes as many at once as there are slots", async () => {
      const place = directory.file("meeting");
      await mkdir(place);
      const names = ["a", "b", "c", "d"];
      const given = names.map((name) =>
        rig().give({ do: "meet", directory: place, name, count: names.length }),
      );
      const ends = await Promise.all(given.map((one) => rig().end(one)));
      expect(ends.map(({ outcome }) => outcome.kind)).to.deep.equal(names.map(() => "success"));
    });

  if (can.has("slot"))
    it("tells each of those that execute at once a slot of its own", async () => {
      for (const place of [directory.file("first"), directory.file("second")]) {
        await mkdir(place);
        const names = ["a", "b", "c", "d"];
        const given = names.map((name) =>
          rig().give({ do: "slot", directory: place, name, count: names.length }),
        );
        const ends = await Promise.all(given.map((one) => rig().end(one)));
        const slots = ends.map(
          ({ outcome }) => outcome.kind === "success" && Buffer.from(outcome.output).toString(),
        );
        expect(slots).to.have.members(["0", "1", "2", "3"]);
      }
    });
}

/** Items that do not end by themselves: nothing of them is left when they are told to. */
function endTests({ directory, rig }: Suite): void {
  const hang = (parts: { readonly stubborn?: boolean } = {}): ItemBehaviour => ({
    do: "hang",
    pids: directory.file("pids"),
    ...parts,
  });
  const pids = (): Promise<number[]> => pidsIn(directory.file("pids"));

  for (const stubborn of [false, true]) {
    const who = stubborn ? "an item that is deaf to every request to end" : "an item";

    it(`ends ${who} when its time is over, with all that it started`, async () => {
      const { outcome } = await rig().run(hang({ stubborn }), { timeoutMs: 1_500 });
      expect(outcome).to.deep.equal({ kind: "timeout", message: "took longer than 1500ms" });
      expect((await pids()).filter(isRunning)).to.deep.equal([]);
      expect((await rig().run({ do: "echo", value: 1 })).outcome.kind).to.equal("success");
    });

    it(`ends ${who} that nobody wants any more, without a result`, async () => {
      const { key } = rig().give(hang({ stubborn }));
      const started = await pids();
      rig().executor.drop(key);
      await eventually("its slot is free", () => rig().executor.load === 0);
      expect([started.filter(isRunning), rig().finished]).to.deep.equal([[], []]);
      expect((await rig().run({ do: "echo", value: 1 })).outcome.kind).to.equal("success");
    });

    it(`lets nothing of ${who} begin that may not begin any more, and it can be started again`, async () => {
      rig().mayBegin = false;
      const { key } = rig().give(hang({ stubborn }));
      const waits = (): boolean => [...rig().executor.unstarted].some((one) => one.key === key);
      await eventually("it is unstarted again", () => rig().executor.load === 0 && waits());
      expect(await readdir(directory.path)).to.not.include("pids");
      rig().mayBegin = true;
      rig().executor.pump();
      expect(await pids()).to.not.deep.equal([]);
    });

    it(`leaves nothing of ${who} when it is closed`, async () => {
      rig().give(hang({ stubborn }));
      const started = await pids();
      await rig().close();
      expect(started.filter(isRunning)).to.deep.equal([]);
    });
  }
}

function checkpointTests({ backendCase, directory, rig }: Suite): void {
  const savedText = backendCase.savedText ?? ((checkpoint) => Buffer.from(checkpoint).toString());

  const save = (): ItemBehaviour => ({
    do: "save",
    checkpoint: "half of it",
    saved: directory.file("saved"),
  });

  it("gives the checkpoint of an attempt that had to end to the next one", async () => {
    const given = rig().give(save());
    await eventually("it is saved", () => readdir(directory.path).then((names) => names.includes("saved")));
    rig().executor.drain();
    await rig().executor.abandon(10_000);
    const { outcome, checkpoint } = await rig().end(given);
    expect(outcome.kind).to.equal("preempted");
    expect(savedText(checkpoint)).to.equal("half of it");

    const { itemId, payload } = given;
    const attempt = {
      ...{ itemId, payload, attempt: 2, checkpoint },
      ...{ alone: false, env: { ROLLOUT_RUN_ID: "the run", ROLLOUT_ATTEMPT: "2" } },
    };
    const next = await rig().backend.execute(attempt, new AbortController().signal, () => undefined);
    expect(next.kind === "success" && Buffer.from(next.output).toString()).to.equal('"half of it"');
  });
}

/** States are values of JSON here, as each kind of item can have them. */
function stateTests({ rig }: Suite): void {
  const keyed = (state?: string): Pick<Assigned, "keyed"> => ({
    keyed: { key: "order 17", commit: 3n, ...(state !== undefined && { state: json(state) }) },
  });
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  const of = ({ outcome }: Finished): unknown[] => {
    if (outcome.kind !== "success") return [outcome.kind];
    const { state } = outcome;
    return [
      String(Buffer.from(outcome.output)),
      state instanceof Uint8Array ? String(Buffer.from(state)) : state,
    ];
  };

  it("gives an item the state of its key, and takes the one that it leaves", async () => {
    expect(of(await rig().run({ do: "learn", state: "one" }, keyed()))).to.deep.equal(["null", '"one"']);
    expect(of(await rig().run({ do: "learn", state: "two" }, keyed("one")))).to.deep.equal([
      '"one"',
      '"two"',
    ]);
    expect(of(await rig().run({ do: "learn", state: null }, keyed("two")))).to.deep.equal([
      '"two"',
      "removed",
    ]);
    // One that does not speak of it leaves it as it is.
    expect(of(await rig().run({ do: "echo", value: 1 }, keyed("two")))).to.deep.equal(["1", undefined]);
    expect(of(await rig().run({ do: "echo", value: 1 }, keyed()))).to.deep.equal(["1", undefined]);
  });

  it("takes no state of an item that fails", async () => {
    const finished = await rig().run({ do: "learn", state: "never", fails: true }, keyed("before"));
    expect(finished.outcome.kind).to.equal("error");
    const { keyed: reported } = resultOf(finished, new Uint8Array());
    expect(reported).to.equal(undefined);
  });

  it("lets a state of the limit through, and no byte more", async () => {
    const most = "x".repeat(STATE_LIMIT - 2);
    expect(of(await rig().run({ do: "learn", state: most }, keyed()))).to.deep.equal(["null", `"${most}"`]);
    const { outcome } = await rig().run({ do: "learn", state: `${most}x` }, keyed());
    expect(outcome.kind === "too_large" && outcome.message).to.match(/state .*(2049|2048)/);
  });
}

/** The worker is killed, and with it its say over what it started. The very same backend is made in another process. */
function orphanTests({ backendCase, directory, rig }: Suite): void {
  const program = new URL("./backend-host-program.ts", import.meta.url).pathname;

  interface Host {
    readonly guardian: number;
    readonly pids: number[];
    stop(): void;
    kill(): Promise<void>;
  }

  async function startHost(): Promise<Host> {
    // Records of children have one worker at a time.
    await rig().close();
    const file = directory.file("pids");
    const payload = JSON.stringify({ do: "hang", pids: file, stubborn: true });
    const host = spawn(process.execPath, [program, backendCase.name, directory.path, payload], {
      env: environmentFor(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const guardian = Number(await firstLine(host.stdout));
    const pids = await pidsIn(file);
    const kill = async (): Promise<void> => {
      host.kill("SIGKILL");
      await once(host, "exit");
    };
    return { guardian, pids, stop: () => void host.kill("SIGSTOP"), kill };
  }

  it("leaves no process of a worker that is killed with -9", async () => {
    const host = await startHost();
    expect(host.pids.every(isRunning)).to.equal(true);
    await host.kill();
    await allGone([...host.pids, host.guardian]);
    // The records of what is gone do no harm.
    await (await BackendRig.open({ open: () => NOTHING }, directory.path)).close();
  });

  it("reaps what a worker left whose guardian was killed before it", async () => {
    const host = await startHost();
    // A worker that stands still cannot replace it.
    host.stop();
    process.kill(host.guardian, "SIGKILL");
    await allGone([host.guardian]);
    await host.kill();
    // The executed process may have noticed; processes that it started have not.
    expect(host.pids.some(isRunning), "nobody was there to kill them").to.equal(true);
    const next = await BackendRig.open({ open: () => NOTHING }, directory.path);
    expect(host.pids.filter(isRunning)).to.deep.equal([]);
    await next.close();
  });
}

const NOTHING: Backend = {
  execute: () => Promise.resolve({ kind: "preempted" }),
  close: () => Promise.resolve(),
};

async function firstLine(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += String(chunk);
    if (text.includes("\n")) break;
  }
  return text.split("\n")[0] ?? "";
}
