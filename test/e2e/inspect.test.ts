// `rollout inspect` beside a real cluster, over plain HTTP as its page speaks it.
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { expect } from "chai";
import type {
  ChartPicture,
  Deed,
  Done,
  Explained,
  PageNews,
  Step,
} from "../../src/inspector/page-messages.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster } from "../support/cluster.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { restartableAddress } from "../support/listeners.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";

/** A page as far as it speaks to its server. */
class Page {
  readonly news: PageNews[] = [];
  readonly process: RolloutProcess;
  readonly url: URL;
  readonly #leaving = new AbortController();

  private constructor(process: RolloutProcess, url: URL) {
    this.process = process;
    this.url = url;
  }

  static async open(cluster: Cluster): Promise<Page> {
    const process = cluster.launch(["inspect"]);
    const line = await process.until("its address", () => process.stdout[0]);
    const page = new Page(process, new URL(line));
    await page.#follow();
    return page;
  }

  of<Kind extends PageNews["kind"]>(kind: Kind): Extract<PageNews, { kind: Kind }>[] {
    return this.news.filter((each): each is Extract<PageNews, { kind: Kind }> => each.kind === kind);
  }

  get isConnected(): boolean {
    return this.of("link").at(-1)?.connected === true;
  }

  get steps(): Step[] {
    return this.of("steps").flatMap(({ steps }) => steps);
  }

  async ask(path: string, body?: Deed): Promise<{ readonly status: number; readonly body: unknown }> {
    const token = this.url.searchParams.get("token") ?? "";
    const response = await fetch(new URL(path, this.url), {
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  }

  async do(deed: Deed): Promise<string> {
    const done = (await this.ask("/do", deed)).body as Done;
    return done.ok ? done.words : `refused: ${done.error.message}`;
  }

  leave(): void {
    this.#leaving.abort();
  }

  async #follow(): Promise<void> {
    const token = this.url.searchParams.get("token") ?? "";
    const { body } = await fetch(new URL("/feed", this.url), {
      headers: { authorization: `Bearer ${token}` },
      signal: this.#leaving.signal,
    });
    const lines = createInterface({ input: Readable.fromWeb(body as ReadableStream) });
    lines.on("error", () => undefined);
    lines.on("line", (line) => {
      if (line !== "") this.news.push(JSON.parse(line) as PageNews);
    });
  }
}

async function statusOf(cluster: Cluster): Promise<Readonly<Record<string, unknown>>> {
  return JSON.parse((await cluster.run("status", "--json")).stdout) as Record<string, unknown>;
}

describe("rollout inspect", () => {
  const it = concurrentTests(2);

  it("runs before the coordinator does, shows it, reports its loss, and finds the next one", async () => {
    await withCluster({}, async (cluster) => {
      await cluster.configure({ "transport.listen_addr": await restartableAddress() });
      const page = await Page.open(cluster);
      expect(page.process.stderr.join("\n")).to.include(cluster.runId).and.include("Ctrl-C");
      const [hello] = await eventually(
        "it is greeted",
        () => page.of("hello").length > 0 && page.of("hello"),
      );
      expect(hello).to.deep.include({ kind: "hello", listens_at: null });
      expect(hello?.run?.run_id).to.equal(cluster.runId);
      await eventually("it says why", () => page.of("link").at(-1)?.reason?.includes("certificate"));

      await cluster.startCoordinator();
      await eventually("the coordinator answers", () => page.isConnected);
      const address = cluster.address;
      await eventually("it is told who leads", () =>
        page.of("status").some(({ status }) => status.coordinators.some(({ role }) => role === "leader")),
      );
      await cluster.coordinator.kill();
      await eventually("it is said to be away", () => !page.isConnected);
      await cluster.startCoordinator();
      await eventually("the next one is found", () => page.isConnected);
      await eventually("the timeline has both", () => {
        const led = page.of("events").flatMap(({ events }) => events.map(({ words }) => words));
        return [0, 1].every((epoch) => led.includes(`${address} leads, epoch ${epoch}`));
      });
      const role = page.steps.filter(({ chart, actor }) => chart === "coordinator-role" && actor === address);
      expect(role.filter(({ to }) => to === "Leader").map(({ event }) => event)).to.have.length(2);
      await cluster.startWorker();
      await eventually("it sees the worker", () =>
        page.of("workers").some(({ changed }) => changed.some(({ state }) => state === "ready")),
      );

      const built = await fetch(page.url);
      expect([built.status, (await built.text()).includes("page.js")]).to.deep.equal([200, true]);
      for (const file of ["page.js", "page.css"])
        expect((await (await fetch(new URL(file, page.url))).text()).length, file).to.be.above(0);
      expect((await fetch(new URL("/", page.url))).status).to.equal(403);
      expect(hello?.charts).to.include.members(["run", "work-item", "worker-lifecycle"]);
      for (const name of hello?.charts ?? []) {
        const { svg, states } = (await page.ask(`/charts/${name}`)).body as ChartPicture;
        expect(states, name).not.to.be.empty;
        for (const { path } of states) expect(svg).to.include(`data-path="${path}"`);
      }
      page.leave();
      expect(await page.process.stop()).to.deep.equal({ code: 0, signal: null });
    });
  });

  it("shows a drain step by step, explains items, and does what the commands do", async () => {
    await withCluster({ "run.max_attempts": 1 }, async (cluster) => {
      await cluster.startCoordinator();
      const page = await Page.open(cluster);
      const worker = await cluster.startWorker({ args: ["--mock-failure-percent", "100"] });
      const id = await worker.id();
      await cluster.submit([{ id: "one" }, { id: "two" }, { id: "three" }]);
      await eventually("all have failed", () => page.of("status").at(-1)?.status.failed === 3);

      // Items and workers as `rollout explain` has them.
      const item = (await page.ask("/item/two")).body as Explained;
      const asCommand = await cluster.run("explain", "two", "--json");
      // Its sentences say how long ago things were, and are made a moment later.
      const untimed = (object: object): object => ({ ...object, explanation: [] });
      expect(untimed(item.object)).to.deep.equal(untimed(JSON.parse(asCommand.stdout) as object));
      expect(item.lines[0]).to.match(/^item [0-9a-f]{64}$/);
      const digits = String(item.object["item"]);
      expect(((await page.ask(`/item/${digits.slice(0, 12)}`)).body as Explained).object).to.include({
        id: "two",
      });
      expect((await page.ask("/item/none")).status).to.equal(404);
      expect(((await page.ask(`/worker/${id}`)).body as Explained).lines[0]).to.include(id);
      expect((await page.ask("/worker/none")).status).to.equal(404);

      // Deeds, with the words of the commands.
      expect(await page.do({ deed: "pause" })).to.equal(
        "The run is paused (by an operator); no item is with a worker.",
      );
      expect(await page.do({ deed: "retry", item: "two" })).to.equal("1 item runs again.");
      expect(await page.do({ deed: "retry" })).to.equal("2 items run again.");
      const counts = await eventually("it is told so", () => {
        const status = page.of("status").at(-1)?.status;
        return status?.failed === 0 && status;
      });
      expect(counts).to.include({ pending: 3, state: "paused", pause_reason: "by an operator" });
      expect(await page.do({ deed: "retry", item: "none" })).to.match(/^refused: /);
      expect(await page.do({ deed: "drain", worker_id: id.toLowerCase() })).to.match(/ is leaving$/);
      expect(await page.do({ deed: "drain", worker_id: "none" })).to.match(/^refused: /);
      expect(await worker.ended).to.deep.equal({ code: 0, signal: null });
      const moves = await eventually("it is seen to leave", () => {
        const own = page.steps.filter(({ chart, actor }) => chart === "worker-lifecycle" && actor === id);
        const states = own.map(({ to }) => to.split("+").find((part) => /Draining|Gone/.test(part)));
        return (
          states.some((state) => state?.includes("Gone")) && states.filter((state) => state !== undefined)
        );
      });
      expect(moves.map((state) => state.split(".").at(-1))).to.deep.equal(["Draining", "Gone"]);
      await eventually("its row says so", () =>
        page
          .of("workers")
          .some(({ changed }) =>
            changed.some(({ worker_id, state }) => worker_id === id && state === "gone"),
          ),
      );
      const words = page.of("events").flatMap(({ events }) => events.map((each) => each.words));
      expect(words).to.include.members([`worker ${id} drains`, `worker ${id} has left in good order`]);

      expect(await page.do({ deed: "resume" })).to.equal("The run goes on: 3 items are not final yet.");
      expect(await page.do({ deed: "cancel" })).to.equal(
        "The run is cancelled: 0 results stay, and 3 of its items are never run.",
      );
      expect(await statusOf(cluster)).to.include({ state: "cancelled" });
      expect(await page.do({ deed: "pause" })).to.match(/^refused: .*cancelled/);
      page.leave();
    });
  });
});
