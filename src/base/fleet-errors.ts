// The rows of the table of errors that fleets lead to; see error-table.ts.
import { conflicting, unknown, usage } from "./error-row.ts";
import type { ErrorRow } from "./error-row.ts";

export const FLEET_ERRORS = {
  fleet_out_of_reach: {
    ...usage,
    message:
      "{source}: workers of fleet {fleet} would look for the coordinator at {addresses}, which on their hosts are those hosts",
    hint: "say in its [[fleet]] where they reach this machine (advertise), or tunnel = true; or give the coordinator an address that others reach",
  },
  fleet_unknown: {
    ...unknown,
    message: "the run has no fleet or allocation {fleet}; its fleets are: {known}",
    hint: "`rollout fleet list{config}` shows them, with --all their allocations; a fleet is a [[fleet]] in rollout.toml of the coordinator",
  },
  fleet_min_over_max: {
    ...conflicting,
    message: "fleet {fleet} cannot have at least {min} workers and at most {max}",
    hint: "give --min and --max; without one of them its value in rollout.toml counts",
  },
  fleet_not_ready: {
    ...conflicting,
    message: "fleet {fleet} cannot start workers: {reason}",
    hint: "its provider says so on the coordinator's machine; docs/fleet.md has the protocol",
  },
} as const satisfies Record<string, ErrorRow>;
