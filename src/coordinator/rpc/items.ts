// One item, and what its attempts wrote: read from the store, with what the reactor has of it.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { runsAlone } from "../../../machines/work-item.ts";
import { failure } from "../../base/errors.ts";
import { ulidToBytes } from "../../base/ids.ts";
import type { AttemptRecordSchema, GetItemResponseSchema, RunService } from "../../gen/rollout/v1/run_pb.ts";
import { ItemState } from "../../gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../gen/rollout/v1/work_pb.ts";
import type { Store } from "../../storage/store.ts";
import { findById, findByName } from "../read/locate-item.ts";
import type { Sought } from "../read/locate-item.ts";
import { ITEM_ID_BYTES } from "../ledger/item-id.ts";
import type { ItemSighting } from "../ledger/ledger.ts";
import type { ReturnedRecord } from "../ledger/records.ts";
import { priorityOf, sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { ItemDetail, ItemStanding, PastAttempt } from "../read/item-detail.ts";
import { readAttemptLog, readItem } from "../read/item-detail.ts";
import type { Leader } from "./leader.ts";
import { ask } from "./leader.ts";
import { refuse } from "./refusals.ts";
import { writeResult } from "./results.ts";

const NAME_CHARACTERS_MAX = 256;

export function items(
  leader: Leader,
  store: Store,
): Pick<ServiceImpl<typeof RunService>, "getItem" | "getAttemptLog"> {
  const { envelope: coordinator } = leader;
  const look = (id: Uint8Array): Promise<ItemSighting> =>
    ask(leader, (answer) => ({ kind: "seeItem", id, answer }));
  return {
    async getItem({ name }, context: HandlerContext) {
      if (name === "" || name.length > NAME_CHARACTERS_MAX) return refuse("GetItem", "name names no item");
      const isAwaited = (): boolean => !context.signal.aborted && !leader.stopping.aborted;
      const sought = await findByName(store, name, isAwaited);
      // An item whose search was broken off is not unknown.
      if (leader.stopping.aborted) throw failure("coordinator_silent", { address: leader.address });
      const place = placeOf(sought, name);
      return { coordinator, ...writeItem(await readItem(store, place, look)) };
    },

    async getAttemptLog({ itemId, attempt }) {
      if (itemId.length !== ITEM_ID_BYTES) return refuse("GetAttemptLog", "item_id is not 32 bytes");
      const place = placeOf(await findById(store, itemId), Buffer.from(itemId).toString("hex"));
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

type WireItem = Exclude<MessageInitShape<typeof GetItemResponseSchema>, { $typeName: string }>;

function writeItem(detail: ItemDetail): WireItem {
  const { place, item, standing, sighting, ahead, checkpointBytes, attempts } = detail;
  return {
    itemId: item.id,
    label: item.label,
    payload: item.payload,
    sequence: BigInt(sequenceOf(place)),
    priority: priorityOf(place),
    maxAttempts: sighting.budgets.maxAttempts,
    maxLost: sighting.budgets.maxLost,
    ...(ahead !== undefined && { ahead: BigInt(ahead) }),
    checkpointBytes: BigInt(checkpointBytes),
    attempts: attempts.map(writeAttempt),
    ...writeStanding(standing),
  };
}

function writeStanding(standing: ItemStanding): WireItem {
  switch (standing.kind) {
    case "fresh":
      return { state: ItemState.FRESH };
    case "returned":
      return { state: ItemState.RETURNED, ...writeBudgets(standing.budgets) };
    case "delayed": {
      const { budgets, dueAtWallMs } = standing;
      return { state: ItemState.DELAYED, ...writeBudgets(budgets), dueAtMs: BigInt(dueAtWallMs) };
    }
    case "running": {
      const { worker, attempt, charged, lost, isAlone, assignedAgeMs } = standing.running;
      const holder = { workerId: ulidToBytes(worker), attempt, charged, lost, alone: isAlone };
      const age = assignedAgeMs === undefined ? {} : { assignedAgeMs: BigInt(Math.round(assignedAgeMs)) };
      return { state: ItemState.RUNNING, ...holder, ...age };
    }
    case "final": {
      const { final } = standing.final;
      const { attempt, worker } = final.record;
      const budgets =
        final.kind === "failed" ? { charged: final.record.charged, lost: final.record.lost } : {};
      const state = final.kind === "done" ? ItemState.DONE : ItemState.FAILED;
      const result = writeResult(standing.final, false);
      return { state, attempt, workerId: ulidToBytes(worker), ...budgets, result };
    }
  }
}

function writeBudgets({ attempt, charged, lost, isApart }: ReturnedRecord): WireItem {
  return { attempt, charged, lost, alone: runsAlone({ lost, isApart }) };
}

const OUTCOMES: Readonly<Record<PastAttempt["class"], OutcomeClass>> = {
  success: OutcomeClass.SUCCESS,
  error: OutcomeClass.ERROR,
  timeout: OutcomeClass.TIMEOUT,
  crash: OutcomeClass.CRASH,
  crash_shared: OutcomeClass.CRASH_SHARED,
  too_large: OutcomeClass.TOO_LARGE,
  preempted: OutcomeClass.PREEMPTED,
  stolen: OutcomeClass.STOLEN,
  fenced: OutcomeClass.FENCED,
  cancelled: OutcomeClass.CANCELLED,
  lost: OutcomeClass.LOST,
};

function writeAttempt(past: PastAttempt): MessageInitShape<typeof AttemptRecordSchema> {
  return {
    attempt: past.attempt,
    workerId: ulidToBytes(past.worker),
    outcome: OUTCOMES[past.class],
    message: past.message,
    pluginVersion: past.pluginVersion,
    startedAtMs: BigInt(Math.round(past.startedAtWallMs)),
    durationMs: BigInt(Math.round(past.durationMs)),
    endedAtMs: BigInt(Math.round(past.endedAtWallMs)),
    logBytes: BigInt(past.logBytes),
  };
}
