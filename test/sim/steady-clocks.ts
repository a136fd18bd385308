// The clocks that timers go by, one for each process that leads: its own, read as wall time when it began to lead.
//
// Keeps true: within a leadership no clock that is set puts it back.
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import type { SimProcess } from "./process.ts";
import { Violation } from "./world.ts";

export class SteadyClocks {
  /** Against the clock of the process. */
  readonly #offsets = new Map<SimProcess, number>();
  /** The same by leadership: a process may lead again, by the wall clock of then. */
  readonly #led = new WeakMap<CoordinatorState, number>();

  /** After a turn. Throws a violation. */
  read(state: CoordinatorState, process: SimProcess): void {
    const { steadyOffsetMs } = state;
    if (steadyOffsetMs === undefined) return;
    const before = this.#led.get(state) ?? -Infinity;
    if (steadyOffsetMs < before) throw new Violation(`${process.name} puts the clock back that timers go by`);
    this.#led.set(state, steadyOffsetMs);
    this.#offsets.set(process, steadyOffsetMs);
  }

  /** Undefined for a process that has decided nothing yet. */
  nowMs(process: SimProcess): number | undefined {
    const offsetMs = this.#offsets.get(process);
    return offsetMs === undefined ? undefined : process.clock.monotonicMs() + offsetMs;
  }
}
