import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "chai";
import { createMachine, setup } from "xstate";
import { seededRandom } from "../../../src/base/random.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { readMachine } from "../../../src/charts/read-machine.ts";
import type { RolloutClient } from "../../../src/compose/rollout-client.ts";
import { ShownActors } from "../../../src/compose/shown-actors.ts";
import type { ListKeysRequestSchema } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { ListKeyHistoryResponseSchema, ListKeysResponseSchema } from "../../../src/gen/rollout/v1/keys_pb.ts";
import type { ActorRow, LogEntry } from "../../../src/inspector/page-messages.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { writeActorState } from "../../../src/runtime/actor-state.ts";
import { eventually } from "../../support/eventually.ts";

const bulb = createMachine({ id: "bulb", initial: "cold", states: { cold: {}, hot: {} } });
const machine = setup({ actors: { bulb } }).createMachine({
  ...{ id: "lamp", initial: "off" },
  states: { off: { on: { press: "lit" } }, lit: { invoke: { src: "bulb", id: "bulb" } } },
});
const lamp = { name: "lamp", machine, model: readMachine(machine), structure: null };

function stateOf(key: string, value: string, children: readonly string[] = []): Uint8Array {
  const snapshot = { status: "active", value, context: { presses: 1 } };
  return writeActorState({
    ...{ type: "lamp", version: 1, events: 1, tags: [], snapshot },
    ...(key.includes("/bulb") && { source: "bulb" }),
    children: Object.fromEntries(children.map((id) => [id, { src: "bulb", kind: "machine" as const }])),
  });
}

type Actors = Readonly<Record<string, readonly [value: string, ...children: string[]]>>;

/** A run of which what is said here is what has changed since it was asked last. */
class Run {
  readonly asked: number[] = [];
  #changed: Actors;
  #commit = 1;
  total = 0;
  #wake: () => void = () => undefined;
  isClosed = false;

  constructor(actors: Actors) {
    [this.#changed, this.total] = [actors, Object.keys(actors).length];
  }

  change(actors: Actors, total = this.total): void {
    [this.#changed, this.#commit, this.total] = [actors, this.#commit + 1, total];
    this.#wake();
  }

  readonly client = {
    news: () => ({
      next: async (signal: AbortSignal) => {
        if (this.asked.length > 0)
          await new Promise<void>((resolve, reject) => {
            this.#wake = resolve;
            signal.addEventListener("abort", () => reject(new Error("aborted")));
          });
        return { status: { keys: { total: this.total } } };
      },
    }),
    keyCalls: {
      listKeys: async ({ fromCommit = 0 }: MessageInitShape<typeof ListKeysRequestSchema>) => {
        this.asked.push(fromCommit);
        const entries = Object.entries(this.#changed);
        return create(ListKeysResponseSchema, {
          keys: entries.map(([key]) => ({ key, stateCommit: this.#commit })),
          contents: entries.map(([key, [value, ...children]]) => ({ state: stateOf(key, value, children) })),
          commit: this.#commit,
        });
      },
      listKeyHistory: async () =>
        create(ListKeyHistoryResponseSchema, { results: [{ payload: Buffer.from(`{"type":"press"}`) }] }),
    },
    close: () => void (this.isClosed = true),
  } as unknown as RolloutClient;
}

/** The page, as it is told of a run. */
async function withPage(run: Run, work: (page: Page) => Promise<void>): Promise<void> {
  const ports = { clock: systemClock, random: seededRandom(1), log: silentLogger, machines: [lamp] };
  const shown = new ShownActors({ ...ports, open: async () => run.client });
  try {
    expect(run.asked).to.deep.equal([]);
    const page = new Page(shown);
    await work(page);
    page.leave();
    await eventually("it to leave", () => (run.isClosed ? true : undefined));
  } finally {
    await shown.close();
  }
}

class Page {
  readonly actors = new Map<string, ActorRow>();
  readonly entries: LogEntry[] = [];
  readonly leave: () => void;
  readonly #shown: ShownActors;

  constructor(shown: ShownActors) {
    this.#shown = shown;
    this.leave = shown.follow((news) => {
      if (news.kind === "log") this.entries.push(...news.entries);
      if (news.kind !== "actors") return;
      for (const row of news.changed) this.actors.set(row.session_id, row);
      for (const key of news.gone) this.actors.delete(key);
    });
  }

  value(key: string): string | undefined {
    return this.actors.get(key)?.value;
  }

  async statesDrawn(key: string): Promise<string[]> {
    const hash = await eventually(`the chart of ${key}`, () => this.actors.get(key)?.definition ?? undefined);
    const picture = await this.#shown.definition("actors1", hash);
    return (picture?.states ?? []).map(({ path }) => path).filter((path) => path !== "");
  }
}

describe("durable actors on the page", () => {
  it("are told with their chart, then as they move and by which event, and not while nobody looks", async () => {
    const run = new Run({ "lamp/1": ["off"] });
    await withPage(run, async (page) => {
      expect(await page.statesDrawn("lamp/1")).to.deep.equal(["off", "lit"]);
      run.change({ "lamp/1": ["lit", "bulb"] });
      await eventually("the step", () => (page.entries.length > 0 ? true : undefined));
      expect(page.entries[0]).to.include({ session_id: "lamp/1", event: "press", value: "lit" });
      expect(run.asked, "the second look is for what has changed").to.deep.equal([0, 1]);
    });
  });

  it("stand below their parents, each machine within one with its own chart, until it is left", async () => {
    // A child may come in the list before its parent.
    const run = new Run({ "lamp/1/bulb": ["cold"], "lamp/1": ["lit", "bulb"] });
    await withPage(run, async (page) => {
      expect(await page.statesDrawn("lamp/1/bulb")).to.deep.equal(["cold", "hot"]);
      expect(await page.statesDrawn("lamp/1")).to.deep.equal(["off", "lit"]);
      expect(page.actors.get("lamp/1/bulb")?.parent_id).to.equal("lamp/1");
      run.change({ "lamp/1/bulb": ["hot"] });
      await eventually("the child to be lit", () => page.value("lamp/1/bulb") === "hot" || undefined);
      run.change({ "lamp/1": ["off"] });
      await eventually("the child to be gone", () => !page.actors.has("lamp/1/bulb") || undefined);
      expect(page.value("lamp/1")).to.equal("off");
      run.change({ "lamp/1": ["lit", "bulb"], "lamp/1/bulb": ["cold"] });
      await eventually("the next child", () => page.value("lamp/1/bulb") === "cold" || undefined);
    });
  });

  it("are gone with all that is within them when they were retired, which the numbers of the run say", async () => {
    const run = new Run({ "lamp/1": ["lit", "bulb"], "lamp/1/bulb": ["hot"], "lamp/2": ["off"] });
    await withPage(run, async (page) => {
      await eventually("all of them", () => page.actors.size === 3 || undefined);
      run.change({ "lamp/2": ["off"] }, 1);
      await eventually("the others to be gone", () => page.actors.size === 1 || undefined);
      expect(page.value("lamp/2")).to.equal("off");
    });
  });
});
