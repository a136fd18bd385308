// Ways to the rows of errors that fleets lead to.
import type { Provocation } from "./scene.ts";

type FleetCode = "fleet_unknown" | "fleet_min_over_max" | "fleet_not_ready";

export const FLEET_PROVOCATIONS: { readonly [Code in FleetCode]: Provocation<Code> } = {
  fleet_unknown: {
    by: "the name of a fleet that the run does not have (a coordinator of ours, made to say so)",
    says: { fleet: "spot", known: "none" },
  },
  fleet_min_over_max: {
    by: "a minimum above the maximum of the file (a coordinator of ours, made to say so)",
    says: { fleet: "spot", min: 5, max: 4 },
  },
  fleet_not_ready: {
    by: "a provider that says no (a coordinator of ours, made to say so)",
    says: { fleet: "spot", reason: "no such image" },
  },
};
