// The steps of this process's own role, for those who look on at its leadership. The role moves before there is a sight, while it
// follows and claims: the last of these steps are kept, each with its time, and shown to the sight of the leadership that they led to.
import type { Clock } from "../../base/clock.ts";
import type { ChartStep } from "../../runtime/driver.ts";
import type { Sight } from "./sight.ts";

const CHART = "coordinator-role";
/** A role that goes on looking for a lease moves now and then, for days. */
const KEPT_MAX = 32;

interface RoleStep {
  readonly step: Pick<ChartStep, "event" | "from" | "to">;
  readonly atMs: number;
}

export class RoleSteps {
  readonly #clock: Clock;
  #kept: RoleStep[] = [];
  #seen: { readonly sight: Sight; readonly coordinator: string } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly note = ({ event, from, to }: Pick<ChartStep, "event" | "from" | "to">): void => {
    // A chart that has begun came from nowhere.
    if (from === "") return;
    const noted = { step: { event, from, to }, atMs: this.#clock.wallMs() };
    this.#kept = [...this.#kept.slice(1 - KEPT_MAX), noted];
    this.#show(noted);
  };

  /** From now on this sight sees them, those of before first. `coordinator`: the address by which it is known to others. */
  showTo(sight: Sight, coordinator: string): void {
    this.#seen = { sight, coordinator };
    for (const noted of this.#kept) this.#show(noted);
  }

  #show({ step, atMs }: RoleStep): void {
    const address = `coordinator/${this.#seen?.coordinator ?? ""}`;
    this.#seen?.sight.step({ chart: CHART, address, ...step }, atMs);
  }
}
