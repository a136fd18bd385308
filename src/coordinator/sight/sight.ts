// The sight of a leader for those who look: its charts as they move, its events, some items at work, and the course of the run. The last
// transitions, events and the course are kept also while nobody looks; items are only looked at while somebody does.
//
// The room of sight: beside this file `history`, the course of the run, and `role-steps`, by which this process has come to lead.
//
// Keeps true: a transition is seen when it is committed, never before (C2); whoever looks changes nothing.
import type { Clock, Timer } from "../../base/clock.ts";
import type { AtWork, Happening, Transition } from "../../gen/rollout/v1/run_pb.ts";
import { Journal } from "../../observe/journal.ts";
import type { JournalReader, Page } from "../../observe/journal.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { EventCall, SeenStep } from "../turn/turn.ts";
import { History, pointOf } from "./history.ts";
import type { Point } from "./history.ts";

export type Sighting =
  | { readonly kind: "transition"; readonly transition: Filled<Transition> }
  | { readonly kind: "happening"; readonly happening: Filled<Happening> }
  | { readonly kind: "point"; readonly point: Point }
  /** Points were forgotten: the history is to be read anew. */
  | { readonly kind: "thinned" }
  | { readonly kind: "atWork"; readonly atWork: Filled<AtWork> };

/** The leader that is looked at. */
export interface Sighted {
  readonly state: CoordinatorState;
  /** Has so many items at work told of, or none any more. False when it takes no questions now. */
  readonly sample: (items: number, told: (atWork: Filled<AtWork>) => void) => boolean;
}

const LOOK_MS = 1_000;
const REMEMBERED = 500;
const ITEMS_SAMPLED = 16;

export class Sight {
  readonly #clock: Clock;
  readonly #journal = new Journal<Sighting>(REMEMBERED);
  #history = new History();
  #isSampling = false;
  #looking: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From now on, until `end`, this is what is seen. */
  begin(sighted: Sighted): void {
    this.end();
    this.#history = new History();
    this.#look(sighted);
  }

  /** Idempotent. */
  end(): void {
    this.#looking?.cancel();
    this.#isSampling = false;
  }

  /** `atMs`: when it was taken, by the wall clock; now, unless said. */
  step({ chart, address, event, from, to }: SeenStep, atMs = this.#clock.wallMs()): void {
    const actor = address.slice(address.indexOf("/") + 1);
    const transition = {
      atMs: Math.round(atMs),
      chart,
      actor: actor === address ? "" : actor,
      event,
      from,
      to,
    };
    this.#journal.note({ kind: "transition", transition });
  }

  /** Beats are left out: there are too many, and `worker list` tells them. */
  event({ topic, payload }: EventCall): void {
    if (topic === "worker_heartbeat") return;
    const atMs = Math.round(this.#clock.wallMs());
    this.#journal.note({
      kind: "happening",
      happening: { atMs, topic, fields: JSON.stringify(payload) },
    });
  }

  get history(): Pick<History, "intervalMs" | "points"> {
    return this.#history;
  }

  get readersMax(): number {
    return this.#journal.readersMax;
  }

  /** The last transitions and events. */
  remembered(): Page<Sighting> {
    return this.#journal.remembered();
  }

  follow(): JournalReader<Sighting> | undefined {
    return this.#journal.follow();
  }

  #look(sighted: Sighted): void {
    this.#looking = this.#clock.after(LOOK_MS, () => this.#look(sighted), { background: true });
    const isRead = this.#journal.isRead;
    const point = this.#addPoint(sighted.state);
    const tell = (...more: readonly Sighting[]): void => {
      for (const sighting of [...point, ...more]) this.#journal.tell(sighting);
    };
    if (!isRead && !this.#isSampling) return tell();
    // Both are one message to each that looks.
    const told = (atWork: Filled<AtWork>): void => tell({ kind: "atWork", atWork });
    const isTaken = sighted.sample(isRead ? ITEMS_SAMPLED : 0, told);
    if (!isTaken) tell();
    // Items go on being followed until the leader has heard that nobody looks.
    this.#isSampling = isRead || !isTaken;
  }

  /** The news of it, if a point is due. */
  #addPoint(state: CoordinatorState): readonly Sighting[] {
    const nowMs = this.#clock.monotonicMs();
    if (!this.#history.isDue(nowMs)) return [];
    const point = pointOf(state, this.#clock.wallMs());
    return [this.#history.add(nowMs, point) ? { kind: "thinned" } : { kind: "point", point }];
  }
}
