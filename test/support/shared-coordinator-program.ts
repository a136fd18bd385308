// A coordinator process over a store that another one has open too: put together as src/compose does it, but for the
// store, which comes from the test. Its order stands in the environment, in JSON, under ORDER.
import { systemClock } from "../../src/base/clock.ts";
import { newUlid } from "../../src/base/ids.ts";
import type { IncarnationId, RunId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { stand } from "../../src/compose/candidacy.ts";
import { turnOffCoreDumps } from "../../src/compose/fence.ts";
import { Coordinator } from "../../src/coordinator/coordinator.ts";
import type { LeaseTiming } from "../../src/coordinator/lead/elector-storage.ts";
import { ACCESS } from "../../src/coordinator/rpc/access.ts";
import { createLog } from "../../src/observe/log.ts";
import { StdoutJsonEmitter } from "../../src/observe/stdout-emitter.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import { startServer } from "../../src/transport/server.ts";
import type { Credentials } from "../../src/transport/tls/identity.ts";
import { LIVENESS } from "./reactor-harness.ts";
import { openSharedStore } from "./shared-store-client.ts";

export interface SharedCoordinatorOrder {
  /** How the store's server calls this process. */
  readonly name: string;
  readonly storeAddress: string;
  readonly runId: RunId;
  readonly credentials: Credentials;
  readonly timing: LeaseTiming;
}

const { name, storeAddress, runId, credentials, timing } = JSON.parse(
  process.env["ORDER"] ?? "",
) as SharedCoordinatorOrder;
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
const candidacy = await stand({ runId, incarnation, store, isShared, timing, clock, events, log });
const coordinator = await Coordinator.start({
  ...{ runId, incarnation, store, clock, random, events, log },
  ...candidacy,
  ownStore: new MemoryStore(),
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
events.emit("coordinator_leading", { epoch: coordinator.epoch, store_id: coordinator.storeId, address });
