// A watch under test: what it has said so far, on a clock that the test moves, against a real server on loopback.
import { assert } from "../../../../src/base/assert.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import type { Random } from "../../../../src/base/random.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import type { ComputeHint, Hint } from "../../../../src/worker/preemption/compute-hint.ts";
import { parseMetadataUrl } from "../../../../src/worker/preemption/metadata-http.ts";
import type { MetadataAddress } from "../../../../src/worker/preemption/metadata-http.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

/** Resolves when the condition holds. It waits for real I/O, which no virtual time hurries. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

/** One round of real I/O. */
export function turn(): Promise<void> {
  return new Promise((resolve) => systemClock.nextTurn(resolve));
}

/** Draws the same number for ever. */
export function constantRandom(unit: number): Random {
  return { ...seededRandom(1), unit: () => unit };
}

export function addressOf({ url }: { readonly url: string }): MetadataAddress {
  const address = parseMetadataUrl(url);
  assert(address !== undefined, "the test server is on loopback");
  return address;
}

export class Watching {
  readonly clock: VirtualClock;
  readonly log = new RecordingLogger();
  readonly hints: Hint[] = [];
  #stopping = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(clock = new VirtualClock()) {
    this.clock = clock;
  }

  start(source: ComputeHint): void {
    this.#ended = source
      .watch(this.#stopping.signal, (hint) => void this.hints.push(hint))
      .finally(() => (this.#isOver = true));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get warnings(): unknown[] {
    return this.log.lines.filter(({ level }) => level === "warn").map(({ fields }) => fields["reason"]);
  }

  /** Resolves when the watch does nothing for so long. */
  async idle(forMs: number): Promise<void> {
    await until(() => this.clock.nextDueInMs === forMs);
  }

  /** Resolves when the watch has ended by itself. */
  async over(): Promise<void> {
    await this.#ended;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }
}
