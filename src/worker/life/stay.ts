// A worker's stay, carried out: what its heart and its work say is told to the chart, which says when the worker leaves of its own accord. Its
// snapshot is in the worker's own store, under `stay/<worker id>`. A worker whose stay nothing limits has none.
import { charts } from "../../../machines/index.ts";
import type { StayContext, StayEnd, StayEvent, StayLimits } from "../../../machines/worker-stay.ts";
import { assert } from "../../base/assert.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Logger } from "../../observe/log.ts";
import { ActorSystem } from "../../runtime/driver.ts";
import type { Store } from "../../storage/store.ts";

export interface StayOptions {
  readonly workerId: WorkerId;
  /** This start of the machine; empty when nobody knows. */
  readonly boot: string;
  /** The worker's own. */
  readonly store: Store;
  readonly limits: StayLimits;
  /** Since when nothing executes or waits at the worker, monotonic; undefined while something does. */
  readonly idleSinceMs: () => number | undefined;
  /** It is to drain. Called once. */
  readonly onLeaving: (cause: StayEnd) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly onFatal: (error: unknown) => void;
}

const STAYS = "stay/";
/** How often the work is looked at, at most: items that come and go are not worth a write each. */
const LOOK_EVERY_MS = 1_000;
/** Looks within the shortest limit. */
const LOOKS = 4;

export class Stay {
  readonly #options: StayOptions;
  readonly #address: string;
  readonly #actors: ActorSystem;
  readonly #lookEveryMs: number;
  #next: Timer | undefined;
  #isStopped = false;

  private constructor(options: StayOptions, actors: ActorSystem) {
    this.#options = options;
    this.#address = addressOf(options.workerId);
    this.#actors = actors;
    const limits = Object.values(options.limits).filter((limitMs) => limitMs !== null);
    this.#lookEveryMs = Math.min(LOOK_EVERY_MS, ...limits.map((limitMs) => limitMs / LOOKS));
  }

  /** Takes up the chart where the process before left it. */
  static async open(options: StayOptions): Promise<Stay> {
    const { clock, boot, limits } = options;
    const born: { stay?: Stay } = {};
    const actors = await ActorSystem.open({
      ...{ ...options, charts, durability: "flush", under: STAYS },
      perform: ({ type }) => (born.stay === undefined ? undefined : born.stay.#perform(type)),
    });
    const stay = (born.stay = new Stay(options, actors));
    await actors.spawn(stay.#address, "worker-stay", undefined);
    await stay.#send({ type: "worker.started", atMs: clock.monotonicMs(), boot, limits });
    stay.#arm();
    return stay;
  }

  /** As the chart names it. */
  get state(): string {
    return this.#actors.stateOf(this.#address) ?? "";
  }

  /** A leader has answered, for the first time or after a self-fence. */
  leaderAnswered(): void {
    this.#tell({ type: "leader.answered", atMs: this.#options.clock.monotonicMs() });
  }

  /** The last beat that was answered was sent then. */
  leaderLost(heardAtMs: number): void {
    this.#tell({ type: "leader.lost", atMs: heardAtMs });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#next?.cancel();
    await this.#actors.close();
  }

  #arm(): void {
    const { clock } = this.#options;
    this.#next = clock.after(this.#lookEveryMs, () => {
      this.#arm();
      this.#look();
    });
  }

  /** Tells how the work stands, and whether it is time. */
  #look(): void {
    const { clock, idleSinceMs } = this.#options;
    const { idleMs, untilMs, awaitedFromMs } = this.#context;
    const sinceMs = idleSinceMs();
    if (idleMs !== null && sinceMs === undefined && this.state === "Idle") this.#tell({ type: "work.began" });
    // Also one that came and went between two looks.
    const isNews = sinceMs !== undefined && (this.state === "Working" || sinceMs > awaitedFromMs);
    if (idleMs !== null && isNews) this.#tell({ type: "work.ended", atMs: sinceMs });
    const atMs = clock.monotonicMs();
    if (atMs >= untilMs) this.#tell({ type: "time.passed", atMs });
  }

  #perform(effect: string): void {
    assert(effect === "askDrain", `no effect of a stay: ${effect}`);
    const { cause } = this.#context;
    assert(cause !== null, "a worker that leaves has a cause");
    if (!this.#isStopped) this.#options.onLeaving(cause);
  }

  /** The context of its own chart, which nothing else writes. */
  get #context(): StayContext {
    return this.#actors.contextOf(this.#address) as StayContext;
  }

  #tell(event: StayEvent): void {
    // The actor system has reported it, when it fails.
    if (!this.#isStopped) this.#send(event).catch(() => {});
  }

  async #send(event: StayEvent): Promise<void> {
    await this.#actors.send(this.#address, event);
  }
}

function addressOf(workerId: WorkerId): string {
  return `${STAYS}${workerId}`;
}
