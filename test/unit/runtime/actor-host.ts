// A machine on which an actor system lives, is killed and lives again: the store and the wall clock go on from one life
// to the next, and everything else begins anew. Effects are checked as they come (C2).
import { expect } from "chai";
import type { Chart } from "../../../machines/migration.ts";
import type { Store } from "../../../src/storage/store.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { ActorSystemOptions, Perform } from "../../../src/runtime/driver.ts";
import { ActorSystem } from "../../../src/runtime/driver.ts";
import { actorRecord } from "../../../src/runtime/snapshot.ts";
import type { ActorRecord } from "../../../src/runtime/snapshot.ts";
import { decodeRecord, okOrFailure } from "../../../src/storage/codec.ts";
import { actorKey } from "../../../src/storage/keys.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import { bellCharts } from "./bell-chart.ts";
import { Life, MortalStore } from "./mortal-store.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

interface Performed {
  /** Which life did it, from 1. */
  readonly life: number;
  readonly address: string;
  readonly type: string;
  readonly params: unknown;
}

interface LifeOptions {
  /** When it is killed; see `Life`. */
  readonly lastStep?: number;
  readonly charts?: Readonly<Record<string, Chart>>;
  /** Put between the system and the store. */
  readonly store?: (inner: Store) => Store;
  /** Done before the effect counts as done; may throw. */
  readonly perform?: Perform;
  /** How long the machine was off before. */
  readonly offMs?: number;
}

export class ActorHost {
  readonly store = new MemoryStore();
  readonly log = new RecordingLogger();
  readonly performed: Performed[] = [];
  readonly fatal: unknown[] = [];
  clock = new VirtualClock();
  life = new Life();
  #lives = 0;

  /** Begins a life. */
  async open(options: LifeOptions = {}): Promise<ActorSystem> {
    return ActorSystem.open(this.begin(options));
  }

  /** Begins a life, and leaves it to the caller to open the system in it. */
  begin({ lastStep, charts = bellCharts, store, perform, offMs = 0 }: LifeOptions = {}): ActorSystemOptions {
    this.#lives++;
    this.life = new Life(lastStep);
    if (this.#lives > 1)
      this.clock = new VirtualClock({
        monotonicMs: 1_000 * this.#lives,
        wallMs: this.clock.wallMs() + offMs,
      });
    const mortal = new MortalStore(this.store, this.life);
    return {
      store: store?.(mortal) ?? mortal,
      charts,
      clock: this.clock,
      random: seededRandom(this.#lives),
      log: this.log,
      durability: "sync",
      perform: this.#perform(this.#lives, this.life, perform),
      onFatal: (error) => void this.fatal.push(error),
    };
  }

  /** The record of an actor as it is on the disk. */
  async recordOf(address: string): Promise<ActorRecord | undefined> {
    const key = actorKey(address);
    const bytes = await this.store.get(key);
    return bytes && okOrFailure("memory", decodeRecord(actorRecord, key, bytes));
  }

  /** `play 0, record, …`, in the order of doing. */
  get done(): string[] {
    return this.performed.map(({ type, params }) =>
      params === undefined ? type : `${type} ${Object.values(params as object).join(" ")}`,
    );
  }

  #perform(number: number, life: Life, perform: Perform | undefined): Perform {
    return async (effect) => {
      const { context } = (await this.recordOf(effect.address)) ?? {};
      const { at = -1 } = (effect.params ?? {}) as { at?: number };
      expect(context, "C2: a step is on the disk before its effects are done")
        .to.have.property("notes")
        .above(at);
      await life.step();
      await perform?.(effect);
      this.performed.push({ life: number, ...effect });
      await life.step();
    };
  }
}

/** A machine in its first life, with a bell at `bell/1`. */
export async function withBell(options: LifeOptions = {}): Promise<{ host: ActorHost; system: ActorSystem }> {
  const host = new ActorHost();
  const system = await host.open(options);
  await system.spawn("bell/1", "bell", undefined);
  return { host, system };
}
