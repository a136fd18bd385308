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
  /** Its workers end by themselves when no coordinator has answered for so long. */
  readonly orphanTimeoutMs: number;
  readonly pricePerHour: number | undefined;
  readonly maxMachineHours: number | undefined;
  readonly maxCost: number | undefined;
  readonly maxCostPerHour: number | undefined;
  /** Wall time. */
  readonly stopAtMs: number | undefined;
  /** Where workers find coordinators, if it is elsewhere than those say. */
  readonly advertise: readonly string[] | undefined;
  readonly provider: ProviderSettings;
}

/** The system that has the machines. */
export type ProviderSettings = ExecSettings | SshSettings;

interface ProviderTimes {
  readonly timeoutMs: number;
  /** Where the configuration is: programs run there. */
  readonly directory: string;
}

export interface ExecSettings extends ProviderTimes {
  readonly kind: "exec";
  readonly command: readonly [string, ...string[]];
}

export interface HostSettings {
  /** As ssh knows it. */
  readonly host: string;
  /** Slots of the worker there; 0: as many as it has cores. */
  readonly slots: number;
}

export interface SshSettings extends ProviderTimes {
  readonly kind: "ssh";
  readonly hosts: readonly HostSettings[];
  /** The client, with words that go before ours. */
  readonly client: readonly [string, ...string[]];
  /** Words, as a shell reads them. */
  readonly program: string;
  /** Further words for the worker. */
  readonly args: readonly string[];
  /** Where workers start on a host; empty: where a login begins. */
  readonly hostDirectory: string;
  readonly environment: Readonly<Record<string, string>>;
  /** A manifest on this machine, which each worker gets. Its paths are those of the host. */
  readonly plugin: string | undefined;
  /** Workers reach the coordinator through tunnels from here. */
  readonly tunnel: boolean;
}
