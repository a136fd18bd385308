// Actors in a world: events go in, workers that have items take them, and what a test says is asked for.
import assert from "node:assert/strict";
import type { Asks } from "../../../../src/coordinator/ledger/asks.ts";
import { NO_ASKS } from "../../../../src/coordinator/ledger/asks.ts";
import type { Origin } from "../../../../src/coordinator/ledger/origin.ts";
import { linesOf, World } from "../../../support/world.ts";
import type { WorldOptions } from "../../../support/world.ts";
import { planSubmission } from "../../../../src/coordinator/rpc/submissions.ts";
import type { Report } from "../../../../src/coordinator/turn/session-frame.ts";
import { reportOf, successOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

export const bytes = (text: string): Uint8Array => Buffer.from(text);

export class ActorRig {
  readonly world: World;
  readonly worker: WorldWorker;
  #submitted = 0;

  private constructor(world: World, worker: WorldWorker) {
    this.world = world;
    this.worker = worker;
  }

  static async start(options: WorldOptions = {}): Promise<ActorRig> {
    const world = await World.start({ budgets: { maxAttempts: 2 }, ...options });
    return new ActorRig(world, await world.worker(1, { slots: 8, credit: 64 }));
  }

  /** An event from outside: `key text`. */
  async send(...texts: string[]): Promise<void> {
    const submission = `01SVBM1SS10N${String(++this.#submitted).padStart(14, "0")}`;
    const keyOf = (text: string): string => text.split(" ")[0] ?? "";
    const planned = await planSubmission(this.world.store, linesOf(texts, { submission, keyOf }));
    assert(planned.kind === "planned");
    const { batch } = planned;
    await this.world.step({ kind: "submit", batch, answer: () => undefined });
    await this.world.settle();
  }

  /** Items that the worker has: `key: payload (origin)`. */
  get held(): string[] {
    return this.worker.held.map(({ keyed, text }) => {
      const key = (keyed?.key ?? "").replaceAll("\0", "!");
      const told = keyed?.origin === undefined ? text.slice(key.length + 1) : text;
      return `${key}: ${told}${wordsOf(keyed?.origin)}`;
    });
  }

  find(key: string): HeldItem {
    const item = this.worker.held.find(({ keyed }) => keyed?.key.replaceAll("\0", "!") === key);
    assert(item !== undefined, `the worker has an item of ${key}: ${JSON.stringify(this.held)}`);
    return item;
  }

  /** The item of the key succeeds, and asks for this. */
  async done(key: string, asks: Partial<Asks> = {}): Promise<void> {
    const item = this.find(key);
    await this.worker.report([item], this.doneReport(item, asks).outcome);
    await this.worker.ask(1);
  }

  doneReport(item: HeldItem, asks: Partial<Asks> = {}): Report {
    const success = successOf(item);
    if (item.keyed?.key.includes("\0") === true) return reportOf(item, success);
    const all = Object.keys(asks).length === 0 ? undefined : { ...NO_ASKS, ...asks };
    const left = { basedOn: item.keyed?.commit ?? 0, state: bytes(item.text), asks: all };
    return reportOf(item, { ...success, keyed: left });
  }

  async fails(key: string, isPermanent = true): Promise<void> {
    const item = this.find(key);
    await this.worker.report([item], { kind: "error", message: "it says no", isPermanent });
    await this.worker.ask(1);
  }

  /** Items that the worker was told to drop are gone from it. Returns how many. */
  forgetDropped(): number {
    const dropped = this.worker.framesOf("drop").flatMap(({ attempts }) => attempts);
    const ids = new Set(dropped.map(({ id }) => Buffer.from(id).toString("hex")));
    const gone = this.worker.held.filter(({ id }) => ids.has(Buffer.from(id).toString("hex")));
    this.worker.forget(gone);
    return gone.length;
  }

  /** A new leader, and the worker comes back to it. */
  async takeOver(): Promise<void> {
    await this.world.lead();
    await this.worker.reconnect();
    await this.worker.ask(64);
  }

  async pass(byMs: number): Promise<void> {
    this.world.pass(byMs);
    await this.world.step({ kind: "wake" });
    await this.world.settle();
  }
}

function wordsOf(origin: Origin | undefined): string {
  if (origin === undefined) return "";
  switch (origin.kind) {
    case "mail":
      return ` (mail of ${origin.from})`;
    case "start":
      return ` (start ${origin.id} of ${origin.parent})`;
    case "action":
      return ` (action ${origin.type})`;
    default:
      return ` (${origin.kind} ${origin.id})`;
  }
}
