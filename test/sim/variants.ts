// Clusters that are broken on purpose. Each lacks one thing that the product does, taken away at a place where parts of it meet:
// between the coordinator and its disk, a worker and its disk, or on the wire.
import type { DescMethod } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { ulidToBytes } from "../../src/base/ids.ts";
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import { AttemptSchema } from "../../src/gen/rollout/v1/common_pb.ts";
import { HeartbeatService } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import type { BeatRequest } from "../../src/gen/rollout/v1/heartbeat_pb.ts";
import {
  HeldAttemptSchema,
  HeldPhase,
  HeldVerdict,
  OutcomeClass,
  ResultBatchSchema,
  ResultSchema,
  SessionRequestSchema,
  WorkService,
} from "../../src/gen/rollout/v1/work_pb.ts";
import type {
  PullRequest,
  Result,
  SessionRequest,
  SessionResponse,
} from "../../src/gen/rollout/v1/work_pb.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  EPOCH_KEY,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  OUTBOX_PREFIX,
  RETURNED_PREFIX,
  RUN_KEY,
} from "../../src/storage/keys.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { runRecord } from "../../src/coordinator/run/run.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../src/storage/store.ts";
import { DelegatingStore } from "../support/delegating-store.ts";
import type { SimProcess } from "./process.ts";
import { CALM_NETWORK } from "./settings.ts";
import type { Fault, Settings } from "./settings.ts";
import type { Send, StreamTap, Tap } from "./sim-transport.ts";
import type { Variant, VariantScope } from "./variant.ts";

/** These kinds of trouble, whatever else was drawn, and so many items that may be in the way of it. */
function under(...faults: Fault[]): (drawn: Settings) => Settings {
  return (drawn) => ({
    ...drawn,
    coordinators: 1,
    faults,
    callers: 0,
    items: Math.max(drawn.items, 40),
    stormMs: 10_000,
    faultEveryMs: 800,
  });
}

/** Another way to commit. */
export function committing(
  change: (batch: Batch, commit: (batch: Batch) => Promise<CommitOutcome>) => Promise<CommitOutcome>,
): (store: Store) => Store {
  return (store) =>
    new (class extends DelegatingStore {
      override commit(batch: Batch): Promise<CommitOutcome> {
        return change(batch, (changed) => super.commit(changed));
      }
    })(store);
}

const COMMITTED: CommitOutcome = { kind: "committed" };

interface Session {
  readonly client: SimProcess;
  send: Send | undefined;
  /** The number of the last batch of results that went up. */
  lastNumber: bigint;
}

/** Changes the frames of sessions. */
function onSessions(handle: (session: Session, frames: Frames) => void): Tap {
  return {
    onStream: (method, client) => {
      if (method !== WorkService.method.session) return undefined;
      const session: Session = { client, send: undefined, lastNumber: 0n };
      return {
        onMessage: (direction, message, send) => {
          session.send = send;
          const frames: Frames = {
            up: direction === "up" ? (message as SessionRequest) : undefined,
            down: direction === "down" ? (message as SessionResponse) : undefined,
            isDropped: false,
          };
          if (frames.up?.frame.case === "results") session.lastNumber = frames.up.frame.value.number;
          handle(session, frames);
          return frames.isDropped ? [] : [message];
        },
      };
    },
  };
}

/** One of the two; may be changed in place. */
interface Frames {
  readonly up: SessionRequest | undefined;
  readonly down: SessionResponse | undefined;
  isDropped: boolean;
}

function itemOf({ attempt }: Pick<Result, "attempt">): string {
  return itemIdText(attempt?.itemId ?? new Uint8Array());
}

/** A result of an attempt that is over is passed off as one of the attempt that is under way, whoever has it. */
export function passOffStaleResults({ ledger }: VariantScope): Tap {
  const sessions = new Map<string, Session>();
  return onSessions((session, { up }) => {
    if (up === undefined) return;
    sessions.set(Buffer.from(up.worker?.workerId ?? []).toString("hex"), session);
    if (up.frame.case !== "results") return;
    for (const result of up.frame.value.results) {
      const running = ledger().get(itemOf(result))?.running;
      if (running === undefined || running.attempt === result.attempt?.attempt) continue;
      const holder = sessions.get(Buffer.from(ulidToBytes(running.worker)).toString("hex"));
      const forged = create(ResultSchema, {
        ...result,
        attempt: create(AttemptSchema, { itemId: running.id, attempt: running.attempt }),
        epoch: BigInt(running.epoch),
        incarnation: ulidToBytes(running.incarnation),
      });
      const frame = {
        case: "results" as const,
        value: { number: holder?.lastNumber ?? 0n, results: [forged] },
      };
      const worker = { workerId: ulidToBytes(running.worker), incarnation: ulidToBytes(running.incarnation) };
      holder?.send?.("up", create(SessionRequestSchema, { worker, frame }));
    }
  });
}

/** The coordinator is told that the victim has handed back all, and the victim is not asked. */
function stealWithoutHandBack(): Tap {
  let latest: SessionRequest | undefined;
  return onSessions((session, frames) => {
    if (frames.up !== undefined) latest = frames.up;
    if (frames.down?.frame.case !== "recall" || latest === undefined) return;
    frames.isDropped = true;
    const { recalled } = frames.down.frame.value;
    const { worker, ackedAssignment } = latest;
    const frame = { case: "handBack" as const, value: { handedBack: recalled } };
    session.send?.("up", create(SessionRequestSchema, { ...(worker && { worker }), ackedAssignment, frame }));
  });
}

/** Results that nobody waits for are not told to the coordinator, and count as told. */
function forgetLateResults({ ledger }: VariantScope): Tap {
  return onSessions((_, { up }) => {
    if (up?.frame.case !== "results") return;
    const { number, results } = up.frame.value;
    const isAwaited = (result: Result): boolean => ledger().get(itemOf(result))?.running !== undefined;
    up.frame.value = create(ResultBatchSchema, { number, results: results.filter(isAwaited) });
  });
}

/** Executions that have ended in one way are reported to have ended in another. */
function reported(outcome: OutcomeClass, as: OutcomeClass): () => Tap {
  return () =>
    onSessions((_, { up }) => {
      if (up?.frame.case !== "results") return;
      for (const result of up.frame.value.results) if (result.outcome === outcome) result.outcome = as;
    });
}

/** A worker's items are not told, and it is told that it may keep all. */
function skipReconciling(): Tap {
  const stated = new WeakMap<Session, number>();
  return onSessions((session, { up, down }) => {
    if (up?.frame.case === "hello") {
      stated.set(session, up.frame.value.held.length);
      up.frame.value.held = [];
    }
    if (down?.frame.case === "verdict")
      down.frame.value.verdicts = Array.from({ length: stated.get(session) ?? 0 }, () => HeldVerdict.KEEP);
  });
}

function keepEverything(): Tap {
  return onSessions((_, { down }) => {
    if (down?.frame.case === "verdict")
      down.frame.value.verdicts = down.frame.value.verdicts.map(() => HeldVerdict.KEEP);
  });
}

/** A worker says that it has everything that the ledger says that it has. */
function claimEverything({ ledger }: VariantScope): Tap {
  const stated = new WeakMap<Session, number>();
  return onSessions((session, { up, down }) => {
    if (up?.frame.case === "hello") {
      const { held } = up.frame.value;
      stated.set(session, held.length);
      const known = new Set(held.map(itemOf));
      const id = Buffer.from(up.worker?.workerId ?? []);
      for (const { idText, running } of ledger().items) {
        if (running === undefined || known.has(idText) || !id.equals(ulidToBytes(running.worker))) continue;
        const attempt = { itemId: running.id, attempt: running.attempt };
        const epoch = BigInt(running.epoch);
        held.push(create(HeldAttemptSchema, { attempt, phase: HeldPhase.RUNNING, epoch }));
      }
    }
    if (down?.frame.case === "verdict")
      down.frame.value.verdicts = down.frame.value.verdicts.slice(0, stated.get(session) ?? 0);
  });
}

/** Changes the requests of calls. */
function inCalls<Request>(method: DescMethod, change: (request: Request) => void): () => Tap {
  const onMessage: StreamTap["onMessage"] = (direction, message) => {
    if (direction === "up") change(message as Request);
    return [message];
  };
  return () => ({ onStream: (called) => (called === method ? { onMessage } : undefined) });
}

/** Pages of what is pending are read once and believed for ever. */
function believingOldPages(store: Store): Store {
  const pages = new Map<string, Entry[]>();
  return new (class extends DelegatingStore {
    override async scan(range: ScanRange): Promise<Entry[]> {
      if (!range.from.startsWith(ITEMS_PREFIX) && !range.from.startsWith(RETURNED_PREFIX))
        return super.scan(range);
      const name = `${range.from} ${range.limit}`;
      const page = pages.get(name) ?? (await super.scan(range));
      if (page.length > 0) pages.set(name, page);
      return page;
    }
  })(store);
}

/** The coordinator does not hear of what workers have that it does not know of itself: nothing is adopted. */
export function hideTheForgotten({ ledger }: VariantScope): Tap {
  /** The verdicts on what was hidden, in their places. */
  const hidden = new WeakMap<Session, readonly (HeldVerdict | undefined)[]>();
  return onSessions((session, { up, down }) => {
    if (up?.frame.case === "hello") {
      const { held } = up.frame.value;
      const verdicts = held.map((one) => {
        if (ledger().get(itemOf(one))?.running !== undefined) return undefined;
        // A result is delivered in any case.
        return one.phase === HeldPhase.FINISHED ? HeldVerdict.KEEP : HeldVerdict.DROP;
      });
      hidden.set(session, verdicts);
      up.frame.value.held = held.filter((_, at) => verdicts[at] === undefined);
    }
    if (down?.frame.case === "verdict") {
      const said = [...down.frame.value.verdicts];
      const whole = hidden.get(session) ?? [];
      down.frame.value.verdicts = whole.map((verdict) => verdict ?? said.shift() ?? HeldVerdict.DROP);
    }
  });
}

/** Every process but the first finds no item that waits for its time. */
function forgettingDelays(store: Store, { name }: SimProcess): Store {
  return new (class extends DelegatingStore {
    override scan(range: ScanRange): Promise<Entry[]> {
      const isHidden = name !== "c.1" && range.from.startsWith(DELAYED_PREFIX);
      return isHidden ? Promise.resolve([]) : super.scan(range);
    }
  })(store);
}

function isHalted(value: Uint8Array): boolean {
  const { state } = okOrFailure("", decodeRecord(runRecord, RUN_KEY, value));
  return state === "Cancelled" || state.endsWith(".Paused");
}

const TIRED: Settings["kinds"] = { flaky: 0.3 };

export const VARIANTS: readonly Variant[] = [
  {
    name: "batches do not expect the epoch",
    coordinatorStore: committing((batch, commit) =>
      commit({ ...batch, expect: batch.puts.some(({ key }) => key === EPOCH_KEY) ? batch.expect : [] }),
    ),
  },
  {
    name: "the disk does not look at what is expected",
    settings: under("successor", "worker-kill"),
    carriedOut: (batch) => ({ ...batch, expect: [] }),
  },
  {
    name: "results and submissions are acknowledged before they are synced",
    coordinatorStore: committing((batch, commit) => commit({ ...batch, durability: "flush" })),
  },
  {
    name: "effects leave before their batch is committed",
    settings: under("coordinator-kill"),
    coordinatorStore: committing(async (batch, commit) => {
      if (batch.puts.some(({ key }) => key === EPOCH_KEY)) return commit(batch);
      void commit(batch);
      return COMMITTED;
    }),
  },
  {
    name: "a result is acknowledged and not written",
    coordinatorStore: committing((batch, commit) =>
      batch.puts.some(({ key }) => key.startsWith(DONE_PREFIX)) ? Promise.resolve(COMMITTED) : commit(batch),
    ),
  },
  {
    name: "a late result is acknowledged and not recorded",
    from: 17,
    settings: (drawn) => ({ ...under("worker-stop", "partition")(drawn), kinds: { slow: 0.5 } }),
    tap: forgetLateResults,
  },
  {
    name: "a result of another attempt is accepted",
    from: 6,
    settings: (drawn) => ({ ...under("worker-stop")(drawn), faultEveryMs: 400, kinds: { slow: 0.6 } }),
    tap: passOffStaleResults,
  },
  { name: "items are stolen and not handed back", tap: stealWithoutHandBack },
  {
    name: "a drain is charged to the item",
    settings: (drawn) => ({ ...under("preemption")(drawn), kinds: { slow: 0.3 } }),
    tap: reported(OutcomeClass.PREEMPTED, OutcomeClass.ERROR),
  },
  {
    name: "items that wait are forgotten at a restart",
    settings: (drawn) => ({ ...under("coordinator-kill")(drawn), kinds: TIRED }),
    coordinatorStore: forgettingDelays,
  },
  {
    name: "what a worker has is not reconciled",
    settings: under("coordinator-kill", "coordinator-restart"),
    tap: skipReconciling,
  },
  {
    name: "a worker keeps what it is told to drop",
    settings: under("worker-stop"),
    tap: keepEverything,
  },
  {
    name: "assignments that did not arrive are not taken back",
    settings: (drawn) => ({
      ...under("coordinator-kill")(drawn),
      network: { ...drawn.network, delayMaxMs: 60, breakChance: 0.01 },
    }),
    tap: claimEverything,
  },
  {
    name: "results are sent and not stored",
    workerStore: committing((batch, commit) =>
      commit({ ...batch, puts: batch.puts.filter(({ key }) => !key.startsWith(OUTBOX_PREFIX)) }),
    ),
  },
  {
    name: "results are sent before they are synced",
    workerStore: committing((batch, commit) => commit({ ...batch, durability: "flush" })),
  },
  {
    name: "workers do not fence themselves",
    // Work waits at workers that stand still for longer than they are waited for.
    settings: (drawn) => ({
      ...under("worker-stop")(drawn),
      ...{ stormMs: 20_000, faultEveryMs: 2_000, slots: 3, prefetch: 8, items: 100, kinds: { slow: 0.5 } },
    }),
    selfFenceTimeoutMs: Number.MAX_SAFE_INTEGER,
  },
  {
    name: "what was started begins unasked",
    // Workers stand still while models load.
    settings: (drawn) => ({
      ...under("worker-stop")(drawn),
      ...{ stormMs: 20_000, faultEveryMs: 2_000, slots: 3, loadingChance: 1, items: 60 },
    }),
    beginsUnasked: true,
  },
  {
    name: "what died with others is charged",
    settings: (drawn) => ({ ...under()(drawn), slots: 3, kinds: { toxic: 0.2 } }),
    tap: reported(OutcomeClass.CRASH_SHARED, OutcomeClass.CRASH),
  },
  {
    name: "what an operator decides about the run is answered and not written",
    settings: (drawn) => ({ ...drawn, steering: { pauses: true, retries: false, cancels: true } }),
    coordinatorStore: committing((batch, commit) =>
      commit({ ...batch, puts: batch.puts.filter(({ key, value }) => key !== RUN_KEY || !isHalted(value)) }),
    ),
  },
  {
    name: "items that are taken back are answered for before they are synced",
    from: 7,
    settings: (drawn) => ({
      ...under("coordinator-power")(drawn),
      ...{ kinds: { big: 0.3 }, steering: { pauses: false, retries: true, cancels: false } },
    }),
    coordinatorStore: committing((batch, commit) =>
      commit(
        batch.deletes.some((key) => key.startsWith(FAILED_PREFIX))
          ? { ...batch, durability: "flush" }
          : batch,
      ),
    ),
  },
  {
    name: "what was given in an answer that was lost stays with its worker",
    from: 5,
    settings: (drawn) => ({
      ...under()(drawn),
      ...{ callers: 5, workers: 1, slots: 1, items: 80, kinds: { slow: 0.7 } },
      network: { ...CALM_NETWORK, lossChance: 0.3 },
    }),
    // Its beats do not say what has arrived.
    tap: inCalls<BeatRequest>(HeartbeatService.method.beat, ({ beat }) => delete beat?.ackedAssignment),
  },
  {
    name: "what an older process had stays with one that beats and does not ask",
    settings: (drawn) => ({ ...under("worker-kill")(drawn), callers: 3, kinds: { slow: 0.4 } }),
    inspect: ({ workers, lastScanMs }) => {
      for (const row of workers.values()) if (row.held.size > 0) row.movedAtMs = lastScanMs;
    },
  },
  {
    name: "a call that was overtaken by a later one is heard",
    settings: (drawn) => ({
      ...under()(drawn),
      ...{ callers: 3, workers: 1, slots: 3, kinds: { slow: 0.5 } },
      network: { ...CALM_NETWORK, duplicateChance: 0.5, slowChance: 0.1 },
    }),
    // Nobody can tell which of two calls of a worker was the later one.
    tap: inCalls<PullRequest>(WorkService.method.pull, (request) => (request.callNumber = 0n)),
  },
  { name: "what was read of the pending items is believed for ever", coordinatorStore: believingOldPages },
];
