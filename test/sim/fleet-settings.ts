// A fleet in a simulated run: its settings, and how the system behaves that has its machines.
import type { FleetSettings } from "../../src/config/fleet.ts";

export interface ProviderWeather {
  /** Each way. */
  readonly delayMaxMs: number;
  /** The chance that an answer comes much later than it was made. */
  readonly lateChance: number;
  /** The chance that nobody answers; whether it is carried out is chance too, and so is when. */
  readonly silentChance: number;
  /** The chance that it says that it cannot, and does nothing. */
  readonly failChance: number;
  readonly fullChance: number;
  readonly refuseChance: number;
  /** The chance that a question arrives once more. */
  readonly repeatChance: number;
  /** The chance that a machine of its queue is said to run. */
  readonly oddChance: number;
  readonly queueMaxMs: number;
  readonly bootMaxMs: number;
  /** The chance that a machine comes and its worker never does. */
  readonly mutedChance: number;
  /** The chance that a machine is taken away, in a second. */
  readonly takenChance: number;
}

export interface FleetMix {
  readonly settings: FleetSettings;
  readonly weather: ProviderWeather;
}

export const CALM_PROVIDER: Partial<ProviderWeather> = {
  ...{ delayMaxMs: 20, lateChance: 0, silentChance: 0, failChance: 0, fullChance: 0, refuseChance: 0 },
  ...{ repeatChance: 0, oddChance: 0, queueMaxMs: 500, bootMaxMs: 500, mutedChance: 0, takenChance: 0 },
};
