// A coordinator process over a store that another one has open too: put together as src/compose does it, but for the
// store, which comes from the test. Its order stands in the environment, in JSON, under ORDER.
import { systemClock } from "../../src/base/clock.ts";
import { newUlid } from "../../src/base/ids.ts";
import type { IncarnationId, RunId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { stand, turnOffCoreDumps } from "../../src/compose/candidacy.ts";
import { openOwnStore } from "../../src/compose/own-store.ts";
import { Coordinator } from "../../src/coordinator/coordinator.ts";
import type { LeaseTiming } from "../../src/coordinator/lead/elector-storage.ts";
import { ACCESS } from "../../src/coordinator/rpc/leader.ts";
import { createLog } from "../../src/observe/winston-log.ts";
import { StdoutJsonEmitter } from "../../src/observe/stdout-emitter.ts";
import { startServer } from "../../src/transport/server.ts";
import type { Credentials } from "../../src/transport/tls/identity.ts";
import { LIVENESS } from "../support/world.ts";
import { openSharedStore } from "../support/shared-store-client.ts";

export interface SharedCoordinatorOrder {
  /** How the store's server calls this process. */
  readonly name: string;
  readonly storeAddress: string;
  /** The host's; the processes of a test share it. */
  readonly stateDir: string;
  readonly runId: RunId;
  readonly credentials: Credentials;
  readonly timing: LeaseTiming;
}

const order = JSON.parse(process.env["ORDER"] ?? "") as SharedCoordinatorOrder;
const { name, storeAddress, stateDir, runId, credentials, timing } = order;
await turnOffCoreDumps();
const [clock, random] = [systemClock, systemRandom];
const { logger: log } = createLog({
  ...{ stream: process.stderr, clock, level: "info", format: "json", colour: false, limitBytes: 65_536 },
});
const events = new StdoutJsonEmitter({
  ...{ stream: process.stdout, fd: 1, runId, clock, log, hide: [], limitBytes: 65_536 },
});
const store = await openSharedStore(storeAddress, name);
const incarnation = newUlid<IncarnationId>(clock, random);
const { multiProcess: isShared } = store.supports;
// Only the order of these counts here: no step is cut short because this process, or the one with the store, got no turn for a while.
const fencePatience = { lookMs: 20_000, wordMs: 40_000, abortMs: 60_000 };
const candidacy = await stand({
  fencePatience,
  runId,
  incarnation,
  store,
  isShared,
  timing,
  clock,
  events,
  log,
});
const coordinator = await Coordinator.start({
  ...{ runId, incarnation, store, clock, random, events, log, fencePatience },
  elector: candidacy.newElector(),
  abortFenced: candidacy.abortFenced,
  ownStore: await openOwnStore({ stateDir, holderName: name, clock, random, log }),
  liveness: LIVENESS,
  workersMax: 10,
  budgets: { maxAttempts: 3, maxLost: 5 },
  inboxMax: 100,
  sign: undefined,
  advertisedAddress: "127.0.0.1:1",
  onFatal: (error) => {
    throw error;
  },
});
const { address } = await startServer({
  ...{ listenAddr: "127.0.0.1:0", credentials, access: ACCESS, log, clock },
  routes: coordinator.routes,
  audit: () => undefined,
});
const { quietMs: quiet_ms, replayMs: replay_ms } = coordinator.takeover;
const leadership = { epoch: coordinator.epoch, store_id: coordinator.storeId, address };
events.emit("coordinator_leading", { ...leadership, quiet_ms, replay_ms });
