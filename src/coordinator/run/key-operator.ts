// Operators and keys: which there are and how they stand, and what an operator has become of them.
import { unreachable } from "../../base/assert.ts";
import { KeyPhase } from "../../gen/rollout/v1/run_pb.ts";
import { KeyRefusalReason } from "../../gen/rollout/v1/keys_pb.ts";
import type { KeyRefusal, ListPartitionsResponse, SteerKeysResponse } from "../../gen/rollout/v1/keys_pb.ts";
import { standingOf } from "../keys/awaited-keys.ts";
import { DELAYED, keyChart, PARKED, WAITING } from "../keys/key.ts";
import type { Key, SteerVerdict } from "../keys/key.ts";
import type { Keys } from "../keys/keys.ts";
import { actionLane, actorOf, invocationLane } from "../keys/lanes.ts";
import { partitionOf } from "../../base/partition.ts";
import type { ItemSighting } from "../ledger/ledger.ts";
import type { Input } from "../turn/input.ts";
import type { OwnPartitions, SeenAsks, SeenKey, SeenKeys } from "../turn/key-terms.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { takeKeys, tellKeys } from "./moved-keys.ts";
import { isCancelled } from "./run.ts";

export type KeyQuestion =
  | "steerKeys"
  | "getAssignment"
  | "getKey"
  | "listKeys"
  | "listPartitions"
  | "tellKeys"
  | "takeKeys";
type Asked<K extends KeyQuestion> = Extract<Input, { readonly kind: K }>;

const REASONS: Readonly<Record<Exclude<SteerVerdict, "done">, KeyRefusalReason>> = {
  unknown: KeyRefusalReason.UNKNOWN,
  notFailed: KeyRefusalReason.NOT_FAILED,
  headFailed: KeyRefusalReason.HEAD_FAILED,
  notIdle: KeyRefusalReason.NOT_IDLE,
};

const PHASES: Readonly<Record<string, KeyPhase>> = {
  Idle: KeyPhase.IDLE,
  Waiting: KeyPhase.WAITING,
  Delayed: KeyPhase.DELAYED,
  Running: KeyPhase.RUNNING,
  Parked: KeyPhase.PARKED,
};

export function onKeyOperator(state: CoordinatorState, turn: Turn, input: Asked<KeyQuestion>): void {
  switch (input.kind) {
    case "steerKeys":
      return turn.answer(input.answer, steer(state, turn, input));
    case "getKey": {
      const key = state.keys.table.get(input.key);
      if (input.isAwaited) state.keys.rows.awaited.add(input.key, key);
      const asks = key && seenAsks(state.keys, key, turn);
      return turn.answer(input.answer, key && { ...seen(state.keys, key), asks });
    }
    case "listKeys":
      return turn.answer(input.answer, list(state, input));
    case "getAssignment":
      return turn.answer(input.answer, ownPartitions(state, input));
    case "tellKeys":
      return turn.answer(input.answer, tellKeys(state, input));
    case "takeKeys":
      return turn.answer(input.answer, takeKeys(state, turn, input));
    case "listPartitions":
      return turn.answer(input.answer, partitionsOf(state, turn));
    default:
      return unreachable(input, "question about keys");
  }
}

/** On disk before it is answered. */
function steer(
  state: CoordinatorState,
  turn: Turn,
  { action, keys }: Asked<"steerKeys">,
): Filled<SteerKeysResponse> {
  const refused: Filled<KeyRefusal>[] = [];
  for (const key of keys) {
    const verdict = isCancelled(state) ? "cancelled" : state.keys.steer(key, action);
    if (verdict === "done") continue;
    const reason = verdict === "cancelled" ? KeyRefusalReason.CANCELLED : REASONS[verdict];
    refused.push({ key, reason });
  }
  turn.requireSync();
  // A comparison that is under way may find other rows.
  if (state.verification !== undefined) state.verification.isStale = true;
  return { steered: keys.length - refused.length, refused };
}

function list(
  { keys, ledger }: CoordinatorState,
  { phases, prefix, fromCommit, parkedActions, after, limit }: Asked<"listKeys">,
): SeenKeys {
  const { table } = keys;
  const wanted = new Set(phases);
  const commit = ledger.tally.nextCompletion + 1;
  const isWanted = (key: Key): boolean => {
    if (!key.text.startsWith(prefix)) return false;
    // No other lane is ever parked.
    if (key.isLane) return parkedActions && key.row.state === PARKED;
    return key.commit >= fromCommit && (wanted.size === 0 || wanted.has(phaseOf(key)));
  };
  const told: SeenKey[] = [];
  let last = "";
  const first = after === "" ? 0 : partitionOf(after, table.totalPartitions);
  for (let partition = first; partition < table.totalPartitions; partition++) {
    const isLater = ({ text }: Key): boolean => partition > first || text > after;
    const page = [...table.keysOf(partition)].filter((key) => isLater(key) && isWanted(key));
    page.sort((one, other) => (one.text < other.text ? -1 : 1));
    for (const key of page) {
      if (told.length >= limit) return { keys: told, after: last, commit };
      told.push(seen(keys, key));
      last = key.text;
    }
  }
  return { keys: told, after: "", commit };
}

function seen(keys: Keys, key: Key): SeenKey {
  const { text, isLane, partition, row, head, commit, hasState, last } = key;
  const { mail, isPaused, hasFailed } = row.context;
  const owner = keys.assignment.ownerOf(partition);
  const stands = { partition, owner, items: mail, head: head?.place, last, standing: standingOf(key) };
  return {
    key: actorOf(text),
    isOfActions: isLane,
    phase: phaseOf(key),
    ...stands,
    isPaused,
    hasFailed,
    commit,
    hasState,
  };
}

/** The parts of an actor that are not in its state. */
function seenAsks({ table }: Keys, { text, actor }: Key, turn: Turn): SeenAsks | undefined {
  const lane = table.get(actionLane(text));
  if (actor === undefined && lane === undefined) return undefined;
  const { timers, live, retirement, parent, isFinal = false } = actor ?? {};
  const wallOf = (dueMs: number): number => Math.round(dueMs - turn.steadyMs + turn.wallMs);
  const all = [...(live?.values() ?? [])];
  const { mail = 0, hasFailed = false } = lane?.row.context ?? {};
  return {
    timers: [...(timers?.values() ?? [])]
      .sort((one, other) => one.dueMs - other.dueMs)
      .map(({ id, dueMs, event, to }) => ({ id, dueAtMs: wallOf(dueMs), event, to })),
    invocations: all
      .filter(({ isChild }) => !isChild)
      .map(({ id, source, number }) => {
        const head = table.get(invocationLane(text, id, number))?.head?.place;
        return { id, source, head };
      }),
    children: all.filter(({ isChild }) => isChild).map(({ id }) => `${text}/${id}`),
    actions: lane && { open: mail, failed: hasFailed ? lane.head?.place : undefined },
    isFinal,
    retiresAtMs: retirement && wallOf(retirement.dueMs),
    parent: parent?.key,
  };
}

/** The key of an item that somebody looks at. */
export function seenAmong(key: Key): NonNullable<ItemSighting["keyed"]> {
  const { partition, head, row } = key;
  return { phase: phaseOf(key), partition, head: head?.place, isHeadOpen: !row.context.hasFailed };
}

function phaseOf({ row }: Key): KeyPhase {
  return PHASES[keyChart.nameOf(row)] ?? KeyPhase.UNSPECIFIED;
}

function ownPartitions({ keys }: CoordinatorState, { workerId }: Asked<"getAssignment">): OwnPartitions {
  const { assignment, isInUse, table, warmth } = keys;
  if (!isInUse) return { epoch: 0, partitions: [], totalPartitions: 0 };
  const partitions = assignment.partitionsOf(workerId).map((partition) => {
    const found = warmth.checkpoints.get(partition);
    return { partition, checkpoint: found && { offset: found.offset, place: found.place } };
  });
  return { epoch: assignment.epoch, partitions, totalPartitions: table.totalPartitions };
}

function partitionsOf({ keys }: CoordinatorState, { wallMs }: Turn): Filled<ListPartitionsResponse> {
  const partitions = Array.from({ length: keys.isInUse ? keys.table.totalPartitions : 0 }, (_, partition) => {
    const numbers = { keys: 0, waiting: 0, parked: 0 };
    for (const { row, isLane } of keys.table.keysOf(partition)) {
      if (isLane) continue;
      numbers.keys++;
      if (row.state === PARKED) numbers.parked++;
      else if (row.state === WAITING || row.state === DELAYED) numbers.waiting++;
    }
    const worker = keys.assignment.ownerOf(partition);
    const checkpoint = keys.warmth.checkpoints.get(partition);
    return {
      partition,
      ...(worker !== undefined && { worker }),
      ...numbers,
      ...(checkpoint && {
        checkpointOffset: checkpoint.offset,
        checkpointAgeMs: Math.max(0, Math.round(wallMs - checkpoint.atWallMs)),
      }),
    };
  });
  return { assignmentEpoch: keys.assignment.epoch, partitions };
}

/** The keys of a run in numbers, for monitoring. */
export interface KeyHealth {
  readonly partitions: number;
  readonly assignmentEpoch: number;
  /** How long a head waits that no worker has taken; undefined when none does. */
  readonly oldestReadyMs: number | undefined;
}

export function keyHealthOf({ keys }: CoordinatorState): KeyHealth | undefined {
  if (!keys.isInUse) return undefined;
  const { table, assignment, oldestReadyMs } = keys;
  return { partitions: table.totalPartitions, assignmentEpoch: assignment.epoch, oldestReadyMs };
}
