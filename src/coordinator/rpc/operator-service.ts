// The service for operators: the reactor's own answers under the leader's envelope, one item and what its attempts wrote, and what has
// a file of its own, `submissions`, `results`, `retries` and `backups`.
//
// The room of the wire. For operators: this service, whose `submissions` are refused by `submission-refusal`, `key-service` with `moved-keys`,
// `release-service` with `release-messages`, and `fleet-service`; calls wait by `news` and `followed-keys`, and journals are read by `followed`. For workers:
// `heartbeat-service`, `enrolment-service` and `work-service`, with `work-messages`, `actor-messages`, `pull` and `pull-messages`. `leading` has all of
// these, `not-leading` refuses them, and each coordinator has the `coordinator-service`. `messages` checks what peers send; `leader` is the coordinator
// behind them, says who may call what, and words what is refused.
import type { ServiceImpl, HandlerContext } from "@connectrpc/connect";
import type { Clock } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import { parseUlid } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import type { OperatorService, WatchChartsResponse } from "../../gen/rollout/v1/run_pb.ts";
import type { EventFeed } from "../../observe/event-journal.ts";
import type { Page } from "../../observe/journal.ts";
import type { Store } from "../../storage/store.ts";
import { backups } from "./backups.ts";
import { pagesOf } from "./followed.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";
import { untilNews } from "./news.ts";
import { writeOrigin } from "./actor-messages.ts";
import { results, writeResult } from "./results.ts";
import { retries } from "./retries.ts";
import { submissions } from "./submissions.ts";
import { findById, findByName, readAttemptLog, readItem } from "../read/item-detail.ts";
import type { Sought } from "../read/item-detail.ts";
import { itemIdOfDigits } from "../ledger/place.ts";
import type { ItemSighting } from "../ledger/ledger.ts";
import type { Place } from "../ledger/place.ts";
import type { Sight, Sighting } from "../sight/sight.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { RunPhase } from "../turn/run-terms.ts";

type Methods<Name extends keyof ServiceImpl<typeof OperatorService>> = Pick<
  ServiceImpl<typeof OperatorService>,
  Name
>;

const UNNAMED_REASON = "an operator has paused it";
const WORKERS_MAX = 1_000;
/** Lines in one message: what is remembered comes in several. */
const LINES_MAX = 100;

/** Shown as it happens; what is left out is not. */
export interface Shown {
  readonly clock: Clock;
  readonly feed?: EventFeed | undefined;
  readonly sight?: Sight | undefined;
}

/** `store` is read for what is asked; nothing is written past the reactor. */
export function operatorService(
  leader: Leader,
  store: Store,
  { clock, feed, sight }: Shown,
): ServiceImpl<typeof OperatorService> {
  return {
    ...steering(leader, clock),
    ...workers(leader),
    ...submissions(leader, store),
    ...results(leader, store, clock),
    ...retries(leader, store),
    ...items(leader, store),
    ...events(leader, feed),
    ...charts(leader, sight),
    ...backups(leader, store),
  };
}

/** The run shown, sealed, paused, resumed and cancelled. */
function steering(leader: Leader, clock: Clock): Methods<"getRun" | "seal" | "pause" | "resume" | "cancel"> {
  const { envelope: coordinator, former } = leader;
  const before = former === undefined ? {} : { formerLeadership: former };
  return {
    async getRun(asked, { signal }) {
      await untilNews(leader, clock, asked, signal);
      return { coordinator, ...before, ...(await ask(leader, { kind: "getRun" })) };
    },

    async seal() {
      refuseIfCancelled(await ask(leader, { kind: "seal" }));
      return { coordinator };
    },

    async pause({ reason }) {
      if (Buffer.byteLength(reason) > LIMITS.itemTextBytes)
        return refuse("Pause", `the reason is longer than ${LIMITS.itemTextBytes} bytes`);
      refuseIfCancelled(await ask(leader, { kind: "pause", reason: reason || UNNAMED_REASON }));
      return { coordinator };
    },

    async resume() {
      refuseIfCancelled(await ask(leader, { kind: "resume" }));
      return { coordinator };
    },

    async cancel() {
      await ask(leader, { kind: "cancel" });
      return { coordinator };
    },
  };
}

/** Workers, one of them asked to leave, and certificates made good for nothing. */
function workers(leader: Leader): Methods<"listWorkers" | "getWorker" | "drainWorker" | "revoke"> {
  const { envelope: coordinator } = leader;
  return {
    async listWorkers({ afterWorkerId, limit: asked }) {
      const after = afterWorkerId === "" ? "" : idIn("ListWorkers", "after_worker_id", afterWorkerId);
      const limit = asked === 0 ? WORKERS_MAX : Math.min(asked, WORKERS_MAX);
      return { coordinator, ...(await ask(leader, { kind: "listWorkers", after, limit })) };
    },

    async getWorker({ workerId: text }) {
      const workerId = idIn("GetWorker", "worker_id", text);
      const detail = await ask(leader, { kind: "getWorker", workerId });
      if (detail === undefined) throw failure("worker_unknown", { worker: workerId });
      return { coordinator, ...detail };
    },

    async drainWorker({ workerId: text }) {
      const workerId = idIn("DrainWorker", "worker_id", text);
      if (await ask(leader, { kind: "drainWorker", workerId })) return { coordinator };
      throw failure("worker_unknown", { worker: workerId });
    },

    async revoke({ bearerId, withWorkers }) {
      const id = idIn("Revoke", "bearer_id", bearerId);
      const verdict = await ask(leader, { kind: "revoke", id, withWorkers });
      if (verdict !== "full") return { coordinator, ...verdict };
      throw failure("overloaded", { what: "the list of revoked certificates", limit: LIMITS.revocations });
    },
  };
}

function idIn(method: string, field: string, text: string): WorkerId {
  return parseUlid<WorkerId>(text) ?? refuse(method, `${field} is no ULID`);
}

/** Events remembered, then those that happen. Without a feed nothing is remembered, and nothing follows. */
function events(leader: Leader, feed: EventFeed | undefined): Methods<"watchEvents"> {
  const { envelope: coordinator } = leader;
  return {
    async *watchEvents({ follow }, { signal }) {
      if (feed === undefined) return;
      const readers = "those who follow the events";
      for await (const { entries, dropped } of pagesOf(leader, feed, { follow, signal, readers })) {
        yield { coordinator, events: entries.slice(0, LINES_MAX), dropped };
        for (let at = LINES_MAX; at < entries.length; at += LINES_MAX)
          yield { coordinator, events: entries.slice(at, at + LINES_MAX), dropped: 0 };
      }
    },
  };
}

/** The charts as they move. Without a sight nothing is seen. */
function charts(leader: Leader, sight: Sight | undefined): Methods<"watchCharts"> {
  const { envelope: coordinator } = leader;
  return {
    async *watchCharts(_, { signal }) {
      if (sight === undefined) return;
      const readers = "those who watch the charts";
      let isFirst = true;
      for await (const page of pagesOf(leader, sight, { follow: true, signal, readers })) {
        yield { coordinator, ...seen(page, sight, isFirst) };
        isFirst = false;
      }
    },
  };
}

/** The part of an answer that a page of sightings makes. */
function seen(
  { entries, dropped }: Page<Sighting>,
  { history: { intervalMs, points } }: Sight,
  isFirst: boolean,
): Filled<WatchChartsResponse> {
  const of = <Kind extends Sighting["kind"]>(kind: Kind): Extract<Sighting, { kind: Kind }>[] =>
    entries.filter((entry): entry is Extract<Sighting, { kind: Kind }> => entry.kind === kind);
  // Points may be among what was dropped.
  const anew = isFirst || dropped > 0 || of("thinned").length > 0;
  const told = anew ? [...points] : of("point").map(({ point }) => point);
  const atWork = of("atWork").at(-1)?.atWork;
  return {
    transitions: of("transition").map(({ transition }) => transition),
    dropped,
    happenings: of("happening").map(({ happening }) => happening),
    ...((anew || told.length > 0) && { history: { anew, intervalMs, points: told } }),
    ...(atWork && { atWork }),
  };
}

const NAME_CHARACTERS_MAX = 256;

/** One item, and what its attempts wrote: read from the store, with what the reactor has of it. */
function items(
  leader: Leader,
  store: Store,
): Pick<ServiceImpl<typeof OperatorService>, "getItem" | "getAttemptLog"> {
  const { envelope: coordinator } = leader;
  const look = (id: Uint8Array, key: string): Promise<ItemSighting> =>
    ask(leader, { kind: "seeItem", id, key });
  return {
    async getItem({ name }, context: HandlerContext) {
      if (name === "" || name.length > NAME_CHARACTERS_MAX) return refuse("GetItem", "name names no item");
      const isAwaited = (): boolean => !context.signal.aborted && !leader.stopping.aborted;
      const sought = await findByName(store, name, isAwaited);
      // An item whose search was broken off is not unknown.
      if (leader.stopping.aborted) throw failure("coordinator_silent", { address: leader.address });
      const place = placeOf(sought, name);
      const { final, origin, ...detail } = await readItem(store, place, look);
      const item = { ...detail.item, ...(origin && { origin: writeOrigin(origin) }) };
      return { coordinator, ...detail, item, ...(final && { result: writeResult(final, false) }) };
    },

    async getAttemptLog({ item, attempt }) {
      const id = itemIdOfDigits(item) ?? refuse("GetAttemptLog", "item is not 64 digits");
      const place = placeOf(await findById(store, id), item);
      const found = await readAttemptLog(store, place, attempt);
      return { coordinator, attempt: found?.attempt ?? attempt, log: found?.log ?? new Uint8Array() };
    },
  };
}

function placeOf(sought: Sought, name: string): Place {
  switch (sought.kind) {
    case "found":
      return sought.place;
    case "unknown":
      throw failure("item_unknown", { name });
    case "several":
      throw failure("item_ambiguous", { name, items: sought.ids.map((id) => id.slice(0, 16)).join(", ") });
  }
}

/** Nothing more can be asked of a run that was cancelled. */
function refuseIfCancelled(phase: RunPhase): void {
  if (phase === "cancelled") throw failure("run_cancelled", {});
}
