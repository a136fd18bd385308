// A coordinator as a process: opens the database, takes the certificate that it shows, holds its post until it is told to stop.
import { relative } from "node:path";
import type { IncarnationId } from "../base/ids.ts";
import { newUlid } from "../base/ids.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import { StallWatch } from "../coordinator/lead/stall-watch.ts";
import { EventJournal } from "../observe/event-journal.ts";
import { turnOffCoreDumps } from "./candidacy.ts";
import { CoordinatorMeter } from "./coordinator-meter.ts";
import { CoordinatorPost } from "./coordinator-post.ts";
import type { Requests } from "./coordinator-post.ts";
import { refuseOutOfReach } from "./fleets.ts";
import { refuseLostDatabase } from "./local-run/run-record.ts";
import { openLedgerStore } from "./ledger-store.ts";
import { Monitor } from "./monitor.ts";
import { reportOn } from "./coordinator-health.ts";
import { openOwnStore } from "./own-store.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { Downfall } from "./process-ports.ts";
import { openServerIdentity } from "./server-identity.ts";
import { holderNameOf } from "./store-holders.ts";
import type { ToldCoordinator } from "./told-coordinator.ts";

/** Follows and leads until it is asked to stop, then hands over in good order. Throws the row of what went wrong instead. */
export async function runCoordinator(
  config: ResolvedConfig,
  processPorts: ProcessPorts,
  requests: Requests,
): Promise<void> {
  refuseOutOfReach(config);
  const { clock, log } = processPorts;
  const journal = new EventJournal({ events: processPorts.events, runId: config.runId, clock });
  const ports = { ...processPorts, events: journal };
  const downfall = new Downfall();
  await turnOffCoreDumps();
  const { path } = config.storage;
  if (path !== undefined) await refuseLostDatabase(path);
  const monitor = await Monitor.open(
    {
      ...{ listenAddr: config.coordinator.monitorAddr, setting: "coordinator.monitor_addr" },
      ...{ log, clock, hasNumbers: true },
    },
    "the database is being opened",
  );
  try {
    await holdPost(config, ports, { journal, downfall, requests, monitor });
  } finally {
    await monitor.close();
  }
}

interface HoldingParts {
  readonly journal: EventJournal;
  readonly downfall: Downfall;
  readonly requests: Requests;
  readonly monitor: Monitor;
}

/** From when the database is opened to when it is closed. */
async function holdPost(
  config: ResolvedConfig,
  ports: ProcessPorts,
  { journal, downfall, requests, monitor }: HoldingParts,
): Promise<void> {
  const { clock, random, log } = ports;
  const incarnation = newUlid<IncarnationId>(clock, random);
  const waiting = new AbortController();
  void requests.stop.then(() => waiting.abort());
  const holderName = holderNameOf("coordinator", requests.isOfLocalRun);
  const opening = { holderName, clock, random, log, tell: ports.tell, signal: waiting.signal };
  const meter = new CoordinatorMeter();
  const { onSynced, onAnswered } = meter;
  const opened = await openLedgerStore(config, { ...opening, onSynced });
  if (opened === undefined) return;
  const store = new StallWatch(opened, { clock, events: ports.events, onAnswered });
  const { stateDir } = config.worker;
  const ownStore = await openOwnStore({ stateDir, holderName, clock, random, log });
  const told = await openTold(config, ports, incarnation);
  try {
    const identity = await openServerIdentity(config, ports, store);
    if (identity.createdCaFile !== undefined)
      ports.tell(`Generated dev CA at ./${relative(".", identity.createdCaFile)}`);
    const post = await CoordinatorPost.take(config, ports, {
      ...{ incarnation, store, ownStore, identity, downfall, journal, requests, meter, told },
    });
    reportOn(monitor, post.desk, { store, clock });
    monitor.metrics = (exposition) => meter.addTo(exposition, store, post.desk);
    const epoch = await post.hold();
    ports.events.emit("coordinator_stopped", { epoch });
  } finally {
    told?.close();
    await ownStore.close();
    await store.close();
  }
}

/** Undefined where nobody is to be told of its charts; nothing for that is loaded then. */
async function openTold(
  config: ResolvedConfig,
  ports: ProcessPorts,
  incarnation: IncarnationId,
): Promise<ToldCoordinator | undefined> {
  const { stately: url } = config.inspect;
  if (url === undefined) return undefined;
  const { ToldCoordinator } = await import("./told-coordinator.ts");
  return new ToldCoordinator(url, config, ports, incarnation);
}
