// Trouble with the database that coordinators share: ways to it that are cut, a server that dies and comes back, or comes back as its
// standby, and a standby that is away, so that nothing synced is answered until it is back, is cancelled, or the server has died.
import type { Random } from "../../src/base/random.ts";
import type { Coordinators } from "./coordinators.ts";
import { awayMs } from "./database.ts";
import type { SharedDatabase } from "./ledger-home.ts";
import { CALM_DATABASE } from "./settings.ts";
import type { SHARED_FAULTS } from "./settings.ts";
import type { SimWorld } from "./world.ts";
import { between, happens } from "./world.ts";

export type DatabaseFault = Exclude<(typeof SHARED_FAULTS)[number], "coordinator-partition" | "step-down">;

export interface DatabaseTrouble {
  readonly world: SimWorld;
  readonly coordinators: Coordinators;
  readonly shared: SharedDatabase;
  readonly random: Random;
}

const CUT_MAX_MS = 9_000;
const AWAY_MAX_MS = 8_000;

export class DatabaseNemesis {
  readonly #trouble: DatabaseTrouble;

  constructor(trouble: DatabaseTrouble) {
    this.#trouble = trouble;
  }

  strike(fault: DatabaseFault): void {
    const { shared } = this.#trouble;
    switch (fault) {
      case "database-cut":
        return this.#cut();
      case "database-restart":
        return shared.database.fail("restart", this.#awayMs());
      case "database-promotion":
        return shared.database.fail("promotion", this.#awayMs());
      case "database-older":
        return shared.database.fail("older copy", this.#awayMs());
      case "standby-away":
        return this.#loseStandby();
    }
  }

  heal(): void {
    const { coordinators, shared } = this.#trouble;
    Object.assign(shared.weather, CALM_DATABASE);
    for (const { machine } of coordinators.all) shared.cuts.mend(machine.name);
    shared.database.heal();
  }

  #awayMs(): number {
    const { world, shared } = this.#trouble;
    return awayMs(world, shared.weather.awayMaxMs);
  }

  #cut(): void {
    const { world, coordinators, shared, random } = this.#trouble;
    const cut = happens(random, 0.2) ? coordinators.all : [coordinators.victim()];
    for (const { machine } of cut) {
      world.say("db", `${machine.name} does not reach it`);
      shared.cuts.cut(machine.name);
      world.after(between(random, 100, CUT_MAX_MS), () => shared.cuts.mend(machine.name));
    }
  }

  #loseStandby(): void {
    const { world, shared, random } = this.#trouble;
    const { database } = shared;
    if (database.isStandbyAway) return;
    database.loseStandby();
    const forMs = between(random, 100, AWAY_MAX_MS);
    if (happens(random, 0.5)) world.after(between(random, 0, forMs), () => database.cancelWaiting());
    world.after(forMs, () => database.standbyReturns());
  }
}
