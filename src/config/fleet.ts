// A fleet as the configuration has it. Durations in milliseconds, prices per hour in whatever money the user counts.

/** How many workers, for how long and for how much. */
export interface FleetSettings {
  readonly name: string;
  /** Items that one of its workers executes at once. */
  readonly slots: number;
  readonly min: number;
  readonly max: number;
  readonly pollIntervalMs: number;
  readonly startTimeoutMs: number;
  /** Undefined: a queue may take as long as it likes. */
  readonly queueTimeoutMs: number | undefined;
  readonly idleTimeoutMs: number;
  /** 0: a slot for each item that could run. */
  readonly finishWithinMs: number;
  readonly maxPending: number;
  readonly maxLifetimeMs: number | undefined;
  readonly pricePerHour: number | undefined;
  readonly maxMachineHours: number | undefined;
  readonly maxCost: number | undefined;
  readonly maxCostPerHour: number | undefined;
  /** Wall time. */
  readonly stopAtMs: number | undefined;
  readonly provider: ProviderSettings;
}

/** The system that has the machines. */
export interface ProviderSettings {
  readonly kind: "exec";
  readonly command: readonly [string, ...string[]];
  readonly timeoutMs: number;
  /** Where the configuration is: the program runs there. */
  readonly directory: string;
}
