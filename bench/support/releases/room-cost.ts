// The room of releases by itself, without a ledger around it: what it takes of a processor for each result of a release that rolls, and for
// each turn in which something was judged. A turn's part is one verdict by all metrics and one row.
import { hash } from "node:crypto";
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { assert } from "../../../src/base/assert.ts";
import type { ReleaseTurn, ReleaseWorker, RunFacts } from "../../../src/coordinator/release/ports.ts";
import { createRelease } from "../../../src/coordinator/release/operator.ts";
import { Releases } from "../../../src/coordinator/release/releases.ts";
import { median } from "../alternating.ts";
import { termsOf } from "./terms.ts";

const STABLE_DIGEST = new Uint8Array(32).fill(1);
const CANDIDATE = { plugin: "p", version: "2", digest: new Uint8Array(32).fill(2) };
const WORKER: ReleaseWorker = {
  id: newUlid(systemClock, systemRandom),
  plugins: [
    { name: "p", version: "1", taskDigest: STABLE_DIGEST },
    { name: "p", version: "2", taskDigest: CANDIDATE.digest },
  ],
};
const FACTS: RunFacts = {
  ...{ plugin: "p", digest: STABLE_DIGEST, isOver: false, isSealed: false },
  ...{ itemsLeft: 1_000_000, itemsWithoutKey: 1_000_000, ready: [WORKER] },
};
const ROUNDS = 11;

export interface RoomCost {
  readonly resultUs: number;
  readonly turnUs: number;
  /** Rows that a turn writes. */
  readonly rowsPerTurn: number;
}

/** Medians of rounds, each of them over so many results, and so many turns with one result. */
export function measureRoom(results: number, turns: number): RoomCost {
  const room = new Room();
  const [resultUs, turnUs]: [number[], number[]] = [[], []];
  // The first round is of a program that is cold.
  for (let round = 0; round <= ROUNDS; round++) {
    const result = usOf(results, () => room.judge());
    const turn = usOf(turns, () => room.turn()) - result;
    if (round === 0) continue;
    resultUs.push(result);
    turnUs.push(turn);
  }
  return { resultUs: median(resultUs), turnUs: median(turnUs), rowsPerTurn: room.rowsPerTurn };
}

/** Processor time of one of so many, in microseconds. */
function usOf(count: number, act: () => void): number {
  const before = process.threadCpuUsage();
  for (let at = 0; at < count; at++) act();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / count;
}

class Room {
  readonly #releases = new Releases({ record: undefined, latest: undefined, open: 0, nowMs: 0 });
  #rows = 0;
  #turns = 0;
  readonly #ids = Array.from({ length: 4_096 }, (_, at) => hash("sha256", `item ${at}`, "buffer"));
  #next = 0;
  readonly #turn: ReleaseTurn = {
    ...{ nowMs: 0, wallMs: 0, steadyMs: 0 },
    put: () => void this.#rows++,
    expect: () => undefined,
    requireSync: () => undefined,
    emit: () => undefined,
    stepped: () => undefined,
    ask: ({ kind }) => assert(false, `nothing is decided here, and ${kind} is asked`),
    recallTrials: () => undefined,
  };

  constructor() {
    const id = newUlid(systemClock, systemRandom);
    const request = {
      id,
      terms: termsOf(),
      candidate: CANDIDATE,
      waits: false,
      isDryRun: false,
      by: "bench",
    };
    const { kind } = createRelease(this.#turn, this.#releases, request, FACTS);
    assert(kind === "release", "the release begins");
    this.#rows = 0;
  }

  get rowsPerTurn(): number {
    return this.#rows / this.#turns;
  }

  /** An item is given out, and its result comes. */
  judge(): void {
    const releases = this.#releases;
    const at = this.#next++;
    const id = this.#ids[at % this.#ids.length];
    assert(id !== undefined, "the ids are there");
    const arm = releases.armOf(releases.deskOf(WORKER), id, true);
    const { trial } = releases.stampOf(arm);
    const attempt = { ticket: releases.given(arm), trial, worker: WORKER.id };
    const [durationMs, measures] = [at % 100, [(at % 97) / 97]];
    releases.ended(attempt, { class: "success", isCounted: false, durationMs, measures });
  }

  /** One result, then the verdict and the row. */
  turn(): void {
    this.judge();
    this.#releases.beforeDispatch(this.#turn, () => FACTS, false);
    this.#releases.turnEnds(this.#turn);
    this.#turns++;
  }
}
