// The library's client against a real coordinator and a real worker of this process, over mutual TLS.
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { RolloutClient } from "../../../src/compose/rollout-client.ts";
import type { RolloutError } from "../../../src/index.ts";
import { Sight } from "../../../src/coordinator/sight/sight.ts";
import { EventJournal } from "../../../src/observe/event-journal.ts";
import type { Backend, Outcome } from "../../../src/worker/backends/backend.ts";
import { newIdentity, newWorkerId } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedPlugins } from "../../support/fixed-plugins.ts";
import { writeCredentials } from "../../support/real-authority.ts";
import { RecordingEmitter } from "../../support/recording-emitter.ts";
import { failureOf } from "../../support/rejection.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import type { CoordinatorTestOptions, TestCluster } from "../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../support/test-coordinator.ts";
import type { ListeningCoordinator } from "../../support/test-coordinator.ts";
import type { StartedWorker } from "../../support/test-worker.ts";
import { startWorker } from "../../support/test-worker.ts";

const MIB = 2 ** 20;

describe("RolloutClient", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  let cluster: TestCluster;
  let coordinator: ListeningCoordinator;
  let client: RolloutClient;
  /** Items with this in them fail. */
  let bad: string;

  async function lead(options: CoordinatorTestOptions & { readonly port?: number } = {}): Promise<void> {
    const started = await startListeningCoordinator(cluster, options);
    coordinator = started;
    closeLater(() => started.stop());
  }

  /** As a program does it: a configuration file, and the certificate of an operator. */
  async function connect(): Promise<RolloutClient> {
    const { runId, ca, server } = coordinator;
    const words = await writeCredentials(
      directory.file("tls"),
      await ca.issue(newIdentity(runId, "operator")),
    );
    await writeFile(directory.file("rollout.toml"), `run_id = "${runId}"\n`);
    const settings: Record<string, string> = { "coordinator-addr": server.address };
    for (let at = 0; at < words.length; at += 2) settings[words[at]?.slice(2) ?? ""] = words[at + 1] ?? "";
    const connected = await RolloutClient.connect({ config: directory.file("rollout.toml"), settings });
    closeLater(() => connected.close());
    return connected;
  }

  /** Gives back what it is given. */
  async function work(): Promise<StartedWorker> {
    const backend: Backend = {
      execute: async ({ payload }, _signal, report): Promise<Outcome> => {
        if (bad === "" || !Buffer.from(payload).includes(bad)) return { kind: "success", output: payload };
        report({ kind: "log", chunk: Buffer.from("it hurts\n") });
        return { kind: "error", message: "no" };
      },
      close: async () => undefined,
    };
    const { address } = coordinator.server;
    const started = await startWorker(coordinator, {
      ...{ address, work: { plugins: fixedPlugins(backend) } },
      onDrainAsked: () =>
        void started.worker.drain({ cause: "operator", deadlineMs: systemClock.monotonicMs() + 5_000 }),
    });
    closeLater(() => started.worker.stop());
    return started;
  }

  async function all<Value>(source: AsyncIterable<Value>): Promise<Value[]> {
    const found: Value[] = [];
    for await (const value of source) found.push(value);
    return found;
  }

  async function twice(call: () => Promise<void>): Promise<void> {
    await call();
    await call();
  }

  const codesOf = async (...asked: Promise<unknown>[]): Promise<string[]> =>
    (await Promise.all(asked.map(failureOf))).map(({ code }) => code);

  const untilFinal = (count: number): Promise<true> =>
    eventually(`${count} final items`, async () => {
      const { done, failed } = await client.status();
      return done + failed === count;
    });

  beforeEach(async () => {
    [bad, cluster] = ["", await newTestCluster()];
    await lead({ budgets: { maxAttempts: 1, maxLost: 5 } });
    client = await connect();
  });

  it("submits values and bytes as they are, identifies them by their content, and gives their results", async () => {
    const bytes = Buffer.from('{ "id":"b" }');
    const items = [{ id: "a", n: 1 }, "text", 7, null, bytes, "text"];
    const told: number[] = [];
    const onProgress = ({ added }: { added: number }): void => void told.push(added);
    expect(await client.submit(items, { onProgress })).to.deep.equal({ added: 6, known: 0, duplicates: 1 });
    expect(told).to.deep.equal([6]);
    expect(await client.submit(items, { seal: true })).to.deep.equal({ added: 0, known: 6, duplicates: 1 });
    await work();
    const results = await all(client.results({ follow: true, order: "input", withInput: true }));
    expect(results.map(({ id }) => id)).to.deep.equal(["a", undefined, undefined, undefined, "b", undefined]);
    const texts = ['{"id":"a","n":1}', '"text"', "7", "null", '{ "id":"b" }', '"text"'];
    expect(results.map(({ output }) => Buffer.from(output).toString())).to.deep.equal(texts);
    expect(results.map(({ input }) => Buffer.from(input ?? []).toString())).to.deep.equal(texts);
    expect(await client.status()).to.include({ state: "complete", done: 6, failed: 0 });
  });

  it("counts in a dry run what would be submitted, and submits and seals nothing", async () => {
    await client.submit(["one"]);
    const foreseen = await client.submit(["one", "two", "two"], { dryRun: true, seal: true });
    expect(foreseen).to.deep.equal({ added: 2, known: 1, duplicates: 1 });
    expect(await client.status()).to.include({ state: "open", pending: 1, sealed: false });
  });

  it("takes items of an async source, and passes on what that throws", async () => {
    const planned = new Error("the source is dry");
    async function* source(): AsyncGenerator<number> {
      yield 1;
      yield 2;
      throw planned;
    }
    const rejection: unknown = await client.submit(source()).catch((error: unknown) => error);
    expect(rejection).to.equal(planned);
    expect(await client.status()).to.include({ pending: 2 });
  });

  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const wrong = [
    { what: "undefined", value: undefined, says: "JSON has no such value" },
    { what: "a function", value: () => 1, says: "JSON has no such value" },
    { what: "a BigInt", value: 1n, says: "it is no JSON" },
    { what: "a cycle", value: cycle, says: "it is no JSON" },
    { what: "too much", value: "x".repeat(MIB), says: "limits.payload" },
  ];
  for (const { what, value, says } of wrong)
    it(`refuses ${what}, saying which it is, and has submitted what came before`, async () => {
      const error = await failureOf(client.submit(["good", value, "never"]));
      expect(error).to.include({ code: "input_invalid" });
      expect(error.params).to.include({ line: "2" });
      expect(error.message).to.contain(says);
      expect(await client.status()).to.include({ pending: 1 });
    });

  it("refuses the items of another plugin, and a manifest that is not there", async () => {
    await client.submit(["one"]);
    const other = directory.file("other.toml");
    await writeFile(other, 'name = "other"\nversion = "1"\nbackend = "mock"\n');
    expect(await failureOf(client.submit(["two"], { plugin: other }))).to.include({ code: "other_task" });
    const missing = client.submit(["two"], { plugin: directory.file("none.toml") });
    expect(await failureOf(missing)).to.include({ code: "manifest_unreadable" });
  });

  it("follows results over a restart of the coordinator: nothing twice, nothing missing, and then the end", async () => {
    await work();
    const troubles: boolean[] = [];
    const seen: (string | undefined)[] = [];
    const following = (async () => {
      const onTrouble = (error: RolloutError | undefined): void => void troubles.push(error !== undefined);
      for await (const { id } of client.results({ follow: true, onTrouble })) seen.push(id);
    })();
    await client.submit([{ id: "one" }, { id: "two" }]);
    await eventually("both", () => seen.length === 2);
    const port = Number(coordinator.server.address.split(":").at(-1));
    await coordinator.stop();
    await eventually("it is missed", () => troubles.length > 0);
    await lead({ port });
    await client.submit([{ id: "three" }], { seal: true });
    await following;
    expect(seen.toSorted()).to.deep.equal(["one", "three", "two"]);
    expect(troubles).to.deep.equal([true, false]);
  });

  it("reads results by pages, and goes on after a cursor in another client", async () => {
    await work();
    await client.submit([1, 2, 3, 4, 5], { seal: true });
    await untilFinal(5);
    const [first] = await all(client.resultPages({ order: "input", limit: 2 }));
    expect(first?.results.map(({ sequence }) => sequence)).to.deep.equal([0, 1]);
    const rest = await all((await connect()).results({ order: "input", after: first?.cursor ?? "" }));
    expect(rest.map(({ sequence }) => sequence)).to.deep.equal([2, 3, 4]);
  });

  it("fails at once without a coordinator, and waits for one when it follows or is told to", async () => {
    const port = Number(coordinator.server.address.split(":").at(-1));
    await client.submit(["one"], { seal: true });
    await coordinator.stop();
    const reading = client.results().next();
    expect((await failureOf(reading)).code).to.equal("coordinator_refused_connection");
    const told: string[] = [];
    const telling = (who: string) => (error: unknown) =>
      void told.push(`${who} ${error === undefined ? "goes on" : "waits"}`);
    const stop = new AbortController();
    const waiting = all(client.results({ patienceMs: 60_000, onTrouble: telling("one") }));
    const following = failureOf(
      all(client.results({ follow: true, signal: stop.signal, onTrouble: telling("other") })),
    );
    await eventually("both wait", () => told.length === 2);
    await lead({ port });
    expect(await waiting).to.deep.equal([]);
    await eventually("the other one goes on", () => told.includes("other goes on"));
    stop.abort();
    expect((await following).code).to.equal("interrupted");
  });

  it("shows an item and its log, and retries it when it has failed", async () => {
    bad = "bad";
    await work();
    await client.submit([{ id: "bad" }, { id: "good" }], { seal: true });
    await untilFinal(2);
    const item = await client.item("bad");
    expect(item).to.include({ state: "failed", attempt: 1 });
    expect(item.result?.error).to.deep.equal({ class: "error", message: "no" });
    for (const name of ["bad", item.item, item.item.slice(0, 8)])
      expect(Buffer.from((await client.log(name)).log).toString()).to.equal("it hurts\n");
    expect(await client.log(item.item, 7)).to.deep.include({ attempt: 7, log: new Uint8Array() });

    bad = "";
    const [one, none] = [
      { retried: 1, skipped: 0 },
      { retried: 0, skipped: 0 },
    ];
    expect(await client.retry({ dryRun: true })).to.deep.equal(one);
    expect(await client.retry({ dryRun: true, failureClass: "crash" })).to.deep.equal(none);
    const named = { dryRun: true, items: ["bad", "good", "bad"] };
    expect(await client.retry(named)).to.deep.equal({ retried: 1, skipped: 2 });
    expect(await client.retry({ failureClass: "crash" })).to.deep.equal(none);
    expect(await client.status()).to.include({ state: "complete", failed: 1 });
    expect(await client.retry({ ...named, dryRun: false })).to.deep.equal({ retried: 1, skipped: 2 });
    await eventually("it is done", async () => (await client.status()).done === 2);
    expect(await client.retry()).to.deep.equal(none);
  });

  it("refuses a name that no item has, and then retries nothing", async () => {
    bad = "bad";
    await work();
    await client.submit([{ id: "bad" }], { seal: true });
    await untilFinal(1);
    const codes = await codesOf(
      client.item("nobody"),
      client.log("nobody"),
      client.log("0".repeat(64)),
      client.retry({ items: ["bad", "nobody"] }),
    );
    expect(codes).to.deep.equal(Array.from({ length: 4 }, () => "item_unknown"));
    expect(await client.status()).to.include({ failed: 1 });
  });

  it("pauses, resumes and cancels, each as often as one likes", async () => {
    await client.submit([1, 2]);
    await twice(() => client.pause("lunch"));
    expect(await client.status()).to.include({ state: "paused", pauseReason: "lunch" });
    await twice(() => client.resume());
    expect(await client.status()).to.include({ state: "open" });
    await twice(() => client.seal());
    expect(await client.status()).to.include({ state: "sealed" });
    await twice(() => client.cancel());
    expect(await client.status()).to.include({ state: "cancelled", pending: 2 });
    expect(await failureOf(client.submit([3]))).to.include({ code: "run_cancelled" });
    expect(await all(client.results({ follow: true }))).to.deep.equal([]);
  });

  it("shows workers, and has one leave in good order", async () => {
    const { id } = await work();
    const isReady = async (): Promise<boolean> => (await client.workers())[0]?.state === "ready";
    await eventually("the worker", isReady);
    expect(await client.worker(id.toLowerCase())).to.include({ workerId: id, state: "ready", slots: 2 });
    await client.drainWorker(id);
    expect(await client.untilWorkerGone(id)).to.equal("gone");
    const unknown = newWorkerId();
    const codes = await codesOf(
      client.worker(unknown),
      client.worker("nobody"),
      client.drainWorker("nobody"),
      client.untilWorkerGone("nobody"),
    );
    expect(new Set(codes)).to.deep.equal(new Set(["worker_unknown"]));
  });

  it("gives events as objects and as lines", async () => {
    await coordinator.stop();
    const { runId } = cluster;
    const journal = new EventJournal({ events: new RecordingEmitter(), runId, clock: systemClock });
    await lead({ events: journal, eventFeed: journal });
    client = await connect();
    const stop = new AbortController();
    const topics: string[] = [];
    const following = (async () => {
      for await (const { topic, run_id } of client.events({ follow: true, signal: stop.signal }))
        topics.push(`${topic} of ${run_id}`);
    })();
    await client.pause("a look around");
    await eventually("the pause", () => topics.includes(`run_paused of ${runId}`));
    stop.abort();
    await following;
    const [line = ""] = await all(client.eventLines());
    expect(JSON.parse(line)).to.include({ topic: "run_paused", reason: "a look around" });
  });

  it("shows the charts as they move, over a restart of the coordinator too", async () => {
    await coordinator.stop();
    await lead({ sight: new Sight(systemClock) });
    client = await connect();
    const stop = new AbortController();
    const moves: string[] = [];
    let wholes = 0;
    const following = (async () => {
      for await (const { transitions, history } of client.charts({ signal: stop.signal })) {
        moves.push(...transitions.map(({ chart, event }) => `${chart} ${event}`));
        wholes += history?.anew === true ? 1 : 0;
      }
    })();
    await client.pause("a look around");
    await eventually("the pause", () => moves.includes("run run.paused"));
    const port = Number(coordinator.server.address.split(":").at(-1));
    await coordinator.stop();
    await lead({ sight: new Sight(systemClock), port });
    await eventually("it is told anew", () => wholes === 2);
    await client.resume();
    await eventually("the next step", () => moves.includes("run run.resumed"));
    stop.abort();
    await following;
  });

  it("ends what is under way when it is closed, and asks nothing more", async () => {
    await client.submit([1]);
    await client.status();
    const pages = client.resultPages({ follow: true });
    const waiting = failureOf(all(client.results({ follow: true })));
    await pages.next();
    client.close();
    client.close();
    expect((await waiting).code).to.equal("interrupted");
    expect((await failureOf(client.status())).code).to.equal("interrupted");
  });

  it("stops following when its signal aborts", async () => {
    await client.submit([1]);
    const stop = new AbortController();
    const following = failureOf(all(client.results({ follow: true, signal: stop.signal })));
    stop.abort();
    expect((await following).code).to.equal("interrupted");
    await client.status();
  });

  it("is not made without a configuration, or with a configuration that is not allowed", async () => {
    const config = directory.file("none.toml");
    expect(await failureOf(RolloutClient.connect({ config }))).to.include({ code: "config_unreadable" });
    const settings = { "coordinator-addr": "not an address" };
    const wrong = RolloutClient.connect({ config: directory.file("rollout.toml"), settings });
    expect(await failureOf(wrong)).to.include({ code: "config_invalid_value" });
  });
});
