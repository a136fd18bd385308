// The edge from Leader to Fenced, driven in a process of its own: a coordinator leads over a store in memory, another epoch
// is written to that store, and the process has to end by SIGABRT. Nothing of a real run is touched.
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import { newUlid } from "../base/ids.ts";
import type { IncarnationId } from "../base/ids.ts";
import { LIMITS } from "../config/limits.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import { Coordinator } from "../coordinator/coordinator.ts";
import { StorageLease } from "../coordinator/lead/lease.ts";
import { MemoryStore } from "../storage/memory/memory-store.ts";
import { stand, turnOffCoreDumps } from "./candidacy.ts";
import { leaseTiming } from "./coordinator-post.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { Downfall } from "./process-ports.ts";

/** `busy`: the main thread is stuck in a loop by then, so the watchdog has to do it. Never returns; throws when nothing came. */
export async function drillFence(config: ResolvedConfig, ports: ProcessPorts, busy: boolean): Promise<never> {
  const { clock, random, events, log, tell } = ports;
  const { runId, liveness } = config;
  await turnOffCoreDumps();
  const incarnation = newUlid<IncarnationId>(clock, random);
  const store = new MemoryStore();
  const timing = leaseTiming(config);
  const candidacy = await stand({ runId, incarnation, store, isShared: true, timing, clock, events, log });
  const downfall = new Downfall();
  const { epoch } = await Coordinator.start({
    ...{ runId, incarnation, store, liveness, clock, random, events, log },
    elector: candidacy.newElector(),
    abortFenced: candidacy.abortFenced,
    ownStore: new MemoryStore(),
    workersMax: LIMITS.workers,
    budgets: { maxAttempts: 3, maxLost: 5 },
    inboxMax: LIMITS.inboxInputs,
    sign: undefined,
    advertisedAddress: config.transport.advertisedAddr,
    onFatal: downfall.because,
  });
  const other = await new StorageLease(store, "another coordinator").claim();
  tell(`epoch ${epoch} leads no more: epoch ${other.epoch} is in the store`);
  const patienceMs = 2 * timing.ttlMs;
  if (busy) spin(clock, patienceMs);
  else await Promise.race([sleep(clock, patienceMs), downfall.promise]);
  throw failure("internal", { detail: `a fenced coordinator still runs after ${patienceMs} ms` });
}

/** Keeps the thread busy: no timer, no message and no I/O of it gets a turn. */
function spin(clock: Clock, forMs: number): void {
  const endMs = clock.monotonicMs() + forMs;
  while (clock.monotonicMs() < endMs);
}
