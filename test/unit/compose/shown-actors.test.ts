import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { expect } from "chai";
import { createMachine } from "xstate";
import { seededRandom } from "../../../src/base/random.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { readMachine } from "../../../src/charts/read-machine.ts";
import type { RolloutClient } from "../../../src/compose/rollout-client.ts";
import { ShownActors } from "../../../src/compose/shown-actors.ts";
import type { ListKeysRequestSchema } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { ListKeyHistoryResponseSchema, ListKeysResponseSchema } from "../../../src/gen/rollout/v1/keys_pb.ts";
import type { PageNews } from "../../../src/inspector/page-messages.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { writeActorState } from "../../../src/runtime/actor-state.ts";
import { eventually } from "../../support/eventually.ts";

const machine = createMachine({
  id: "lamp",
  initial: "off",
  states: { off: { on: { press: "lit" } }, lit: {} },
});

function stateOf(value: string): Uint8Array {
  const snapshot = { status: "active", value, context: { presses: 1 } };
  return writeActorState({ type: "lamp", version: 1, events: 1, tags: [], snapshot });
}

/** A run of which what is said here is what has changed since it was asked last. */
class Run {
  readonly asked: number[] = [];
  #changed: Readonly<Record<string, string>>;
  #commit = 1;
  #wake: () => void = () => undefined;
  isClosed = false;

  constructor(actors: Readonly<Record<string, string>>) {
    this.#changed = actors;
  }

  change(actors: Readonly<Record<string, string>>): void {
    [this.#changed, this.#commit] = [actors, this.#commit + 1];
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
      },
    }),
    keyCalls: {
      listKeys: async ({ fromCommit = 0 }: MessageInitShape<typeof ListKeysRequestSchema>) => {
        this.asked.push(fromCommit);
        const entries = Object.entries(this.#changed);
        return create(ListKeysResponseSchema, {
          keys: entries.map(([key]) => ({ key })),
          contents: entries.map(([, value]) => ({ state: stateOf(value) })),
          commit: this.#commit,
        });
      },
      listKeyHistory: async () =>
        create(ListKeyHistoryResponseSchema, { results: [{ payload: Buffer.from(`{"type":"press"}`) }] }),
    },
    close: () => void (this.isClosed = true),
  } as unknown as RolloutClient;
}

describe("durable actors on the page", () => {
  it("are told with their chart, then as they move and by which event, and not while nobody looks", async () => {
    const run = new Run({ "lamp/1": "off", "lamp/1/bulb": "off" });
    const machines = [{ name: "lamp", machine, model: readMachine(machine), structure: null }];
    const ports = { clock: systemClock, random: seededRandom(1), log: silentLogger, machines };
    const shown = new ShownActors({ ...ports, open: async () => run.client });
    try {
      expect(run.asked).to.deep.equal([]);
      const told: PageNews[] = [];
      const leave = shown.follow((news) => told.push(news));
      const rows = () => told.flatMap((news) => (news.kind === "actors" ? news.changed : []));
      await eventually("both actors with their chart", () =>
        rows().filter(({ definition }) => definition !== null).length >= 2 ? true : undefined,
      );
      expect(rows().find(({ session_id }) => session_id === "lamp/1/bulb")?.parent_id).to.equal("lamp/1");
      const hash = rows().find(({ definition }) => definition !== null)?.definition ?? "";
      const picture = await shown.definition("actors1", hash);
      expect(picture?.states.map(({ path }) => path)).to.include.members(["off", "lit"]);
      run.change({ "lamp/1": "lit" });
      const entries = () => told.flatMap((news) => (news.kind === "log" ? news.entries : []));
      await eventually("the step", () => (entries().length > 0 ? true : undefined));
      expect(entries()[0]).to.include({ session_id: "lamp/1", event: "press", value: "lit" });
      expect(run.asked, "the second look is for what has changed").to.deep.equal([0, 1]);
      leave();
      await eventually("it to leave", () => (run.isClosed ? true : undefined));
    } finally {
      await shown.close();
    }
  });
});
