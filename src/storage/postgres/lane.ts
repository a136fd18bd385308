// How a group is written on a connection: as one statement, or where something is expected to be absent as one transaction. Says what
// became of it, or rejects with what the driver says; what that means is the writer's to judge.
//
// Keeps true: expectations are compared under locks that are held until the commit, so the order in which groups commit is an order
// in which each of them was true. A place that is expected to be absent is held by a row that nobody else sees.
import { assert } from "../../base/assert.ts";
import { isSameValue } from "../store.ts";
import type { Batch, CommitOutcome } from "../store.ts";
import { byteaArray, bytesOfKey, keyArray, keyOfBytes } from "./bytea.ts";
import type { Connection, Row } from "./connection.ts";
import { applyTo, mergedWrites, shapeOf, split } from "./group-plan.ts";
import type { Writes } from "./group-plan.ts";
import { ConnectionLost } from "./outcomes.ts";
import { BEGIN, COMMIT, ROLLBACK, SET_TERMS } from "./statements.ts";
import type { Statements } from "./statements.ts";

/** The row by which a writer counts what it has written; see writer.ts. */
export interface Turn {
  readonly writer: string;
  readonly session: number;
  readonly number: number;
}

export interface Task {
  readonly group: readonly Batch[];
  readonly statements: Statements;
  /** Undefined where nothing is counted. */
  readonly turn: Turn | undefined;
  /** The first commit of the store is noted in it. */
  readonly isFirst: boolean;
  readonly limitMs: number;
  /** Told what the answers will be if the commit that is now sent takes effect. */
  readonly onSent: (outcomes: readonly CommitOutcome[]) => void;
}

/** The answers, and whether anything was written. */
export interface Written {
  readonly outcomes: readonly CommitOutcome[];
  readonly hasCommitted: boolean;
}

export function writeGroup(connection: Connection, task: Task): Promise<Written> {
  const [first] = task.group;
  assert(first !== undefined, "a group has a batch");
  const inSteps = shapeOf(first).kind === "steps" || task.isFirst;
  return inSteps ? writeInSteps(connection, task) : writeAtOnce(connection, task, first);
}

const COMMITTED: CommitOutcome = { kind: "committed" };

/** In a group, one that wants to last makes all before it last. */
function level(connection: Connection, group: readonly Batch[]): string {
  return group.some(({ durability }) => durability === "sync") ? connection.facts.lasting : "off";
}

async function writeAtOnce(connection: Connection, task: Task, { expect }: Batch): Promise<Written> {
  const { group, statements, turn, limitMs } = task;
  const isOwn = group.some((batch) => shapeOf(batch).kind === "own");
  const kinds = turn === undefined ? statements.fencedLease : statements.fencedTurn;
  const { deletes, keys, values } = split(mergedWrites(group));
  const parameters = [
    keyArray(expect.map(({ key }) => key)),
    byteaArray(expect.map(({ value }) => value ?? EMPTY)),
    expect.length,
    level(connection, group),
    keyArray(deletes),
    keyArray(keys),
    byteaArray(values),
    ...(turn === undefined ? [] : [turn.number, turn.writer, turn.session]),
  ];
  task.onSent(group.map(() => COMMITTED));
  const { rows } = await connection.ask(isOwn ? kinds.own : kinds.shared, parameters, limitMs);
  const held = new Set(
    textOf(rows[0]?.["held"])
      .split(",")
      .filter((at) => at !== ""),
  );
  if (held.size < expect.length) {
    const there = new Set(expect.filter((_, at) => held.has(String(at + 1))).map(({ key }) => key));
    const outcomes = group.map(({ expect: expected }) =>
      conflictOver(
        expected.map(({ key }) => key),
        there,
      ),
    );
    return { outcomes, hasCommitted: false };
  }
  if (rows[0]?.["turns"] !== "1")
    throw new ConnectionLost("this writer was taken over, or the database was set back");
  return { outcomes: group.map(() => COMMITTED), hasCommitted: true };
}

const EMPTY = new Uint8Array(0);

function textOf(column: Row[string] | undefined): string {
  return typeof column === "string" ? column : "";
}

function conflictOver(expected: readonly string[], there: ReadonlySet<string>): CommitOutcome {
  const key = expected.find((one) => !there.has(one));
  assert(key !== undefined, "something that was expected is not there");
  return { kind: "conflict", key };
}

async function writeInSteps(connection: Connection, task: Task): Promise<Written> {
  const { group, statements, turn, limitMs } = task;
  const ask = (text: string, values: Parameters<Connection["ask"]>[1] = []) =>
    connection.ask(text, values, limitMs);
  await ask(BEGIN);
  try {
    await ask(SET_TERMS, [level(connection, group)]);
    if (turn !== undefined) {
      const { count } = await ask(statements.countTurn, [turn.number, turn.writer, turn.session]);
      if (count !== 1) throw new ConnectionLost("this writer was taken over, or the database was set back");
    }
    const { rows, held } = await lockRows(ask, statements, group);
    const { outcomes, writes } = decide(group, rows);
    const hasCommitted = outcomes.some(({ kind }) => kind === "committed");
    if (!hasCommitted) {
      await ask(ROLLBACK);
      return { outcomes, hasCommitted };
    }
    for (const key of held) if (!writes.has(key)) writes.set(key, null);
    const { deletes, keys, values } = split(writes);
    await ask(statements.write, [keyArray(deletes), keyArray(keys), byteaArray(values)]);
    if (task.isFirst) await ask(statements.noteWritten);
    task.onSent(outcomes);
    const { command } = await ask(COMMIT);
    if (command !== "COMMIT") throw new ConnectionLost("the transaction had failed before its commit");
    return { outcomes, hasCommitted };
  } catch (error) {
    // Ends the transaction on a connection that is still good; on another one there is nothing to end.
    if (!connection.isLost) await ask(ROLLBACK).catch(() => connection.end());
    throw error;
  }
}

type Ask = (text: string, values?: Parameters<Connection["ask"]>[1]) => ReturnType<Connection["ask"]>;

/** Locked until the end of the transaction: rows that are expected, by key, and places of those that are not there. */
async function lockRows(
  ask: Ask,
  statements: Statements,
  group: readonly Batch[],
): Promise<{ readonly rows: Map<string, Uint8Array>; readonly held: ReadonlySet<string> }> {
  const expected = [...new Set(group.flatMap(({ expect }) => expect.map(({ key }) => key)))].sort();
  const held = new Set<string>();
  const rows = new Map<string, Uint8Array>();
  // Ends: what was put meanwhile is found and locked by the next look, and what was deleted meanwhile is held by it.
  for (;;) {
    const open = expected.filter((key) => !held.has(key) && !rows.has(key));
    if (open.length === 0) return { rows, held };
    for (const { key, value } of (await ask(statements.lockExpected, [keyArray(open)])).rows)
      if (key instanceof Uint8Array && value instanceof Uint8Array) rows.set(keyOfBytes(key), value);
    for (const key of open) {
      if (rows.has(key)) continue;
      const { count } = await ask(statements.holdAbsent, [byteaArray([bytesOfKey(key)])]);
      if (count === 1) held.add(key);
    }
  }
}

/** One batch after the other, each seeing those before it. */
function decide(
  group: readonly Batch[],
  rows: ReadonlyMap<string, Uint8Array>,
): { readonly outcomes: readonly CommitOutcome[]; readonly writes: Writes } {
  const writes: Writes = new Map();
  const outcomes = group.map((batch): CommitOutcome => {
    const failed = batch.expect.find(({ key, value }) => {
      const found = writes.get(key) ?? (writes.has(key) ? null : (rows.get(key) ?? null));
      return !isSameValue(found, value);
    });
    if (failed !== undefined) return { kind: "conflict", key: failed.key };
    applyTo(writes, batch);
    return COMMITTED;
  });
  return { outcomes, writes };
}
