// An actor as it is stored: its snapshot, and the chart that made it. A snapshot of another version is migrated step by step or
// refused; one with the right version and the wrong structure is refused, for its chart was changed behind its back.
import { isDeepStrictEqual } from "node:util";
import type { AnyStateMachine, AnyStateNode, StateValue } from "xstate";
import type { Chart, ChartSnapshot } from "../../machines/migration.ts";
import { describeError, failure } from "../base/errors.ts";
import type { RecordType } from "../storage/codec.ts";
import type { Field, Fields, Tuple } from "../storage/fields.ts";
import { RECORD_KIND } from "../storage/keys.ts";
import { structureHash } from "./chart-structure.ts";

export interface ActorRecord {
  readonly chart: string;
  readonly version: string;
  readonly structure: string;
  readonly value: StateValue;
  readonly context: unknown;
}

export const actorRecord: RecordType<ActorRecord> = {
  kind: RECORD_KIND.actor,
  name: "actor",
  version: 2,
  // Version 1 also had effects that were not done and timers: both ended with the process.
  migrations: { 1: (older) => encodeActor(decodeActor(older)) },
  encode: encodeActor,
  decode: decodeActor,
};

function encodeActor({ chart, version, structure, value, context }: ActorRecord): Tuple {
  // The context is the chart's own plain data; the codec asserts that it is.
  return [chart, version, structure, value as Field, context as Field];
}

function decodeActor(fields: Fields): ActorRecord {
  return {
    chart: fields.text(0),
    version: fields.text(1),
    structure: fields.text(2),
    value: fields.plain(3) as StateValue,
    context: fields.plain(4),
  };
}

/** The chart that wrote a record, as the record names it. */
export function stamp(machine: AnyStateMachine): Pick<ActorRecord, "chart" | "version" | "structure"> {
  return { chart: machine.id, version: machine.version ?? "", structure: structureHash(machine) };
}

/**
 * The record as the current version of its chart has it: migrated where an older version wrote it. Fails with
 * `store_newer` or `store_corrupt`, naming the key, when it cannot be read with certainty.
 */
export function upgrade(
  record: ActorRecord,
  chart: Chart,
  where: { path: string; key: string },
): ActorRecord {
  const { machine, migrations } = chart;
  const current = stamp(machine);
  let snapshot: ChartSnapshot = { value: record.value, context: record.context };
  let version = record.version;
  for (let steps = 0; version !== current.version; steps++) {
    const next = migrations.find(({ from }) => from === version);
    if (next === undefined || steps > migrations.length)
      throw failure("store_newer", {
        ...where,
        found: `${record.chart} ${record.version}`,
        known: current.version,
      });
    snapshot = next.migrate(snapshot);
    version = next.to;
  }
  if (record.version === current.version && record.structure !== current.structure)
    throw failure("store_corrupt", {
      ...where,
      reason: `chart ${record.chart} ${version} has another structure`,
    });
  const value = resolveValue(machine, snapshot, where);
  return { ...record, ...current, value, context: snapshot.context };
}

/**
 * The state as the chart has it, its regions in the chart's order. Refuses one that is not whole in this chart: a state
 * that it does not have, or one that has become compound or parallel since. XState would take the latter for its first
 * child, without the entry actions of it.
 */
function resolveValue(
  machine: AnyStateMachine,
  { value, context }: ChartSnapshot,
  where: { path: string; key: string },
): StateValue {
  let resolved: StateValue;
  try {
    resolved = machine.resolveState({ value, context }).value as StateValue;
  } catch (error) {
    throw failure("store_corrupt", { ...where, reason: describeError(error) }, error);
  }
  if (!isDeepStrictEqual(resolved, value))
    throw failure("store_corrupt", {
      ...where,
      reason: `${JSON.stringify(value)} is not a whole state of chart ${machine.id} ${machine.version ?? ""}`,
    });
  return inChartOrder(machine.root, resolved);
}

/** A migration may name parallel regions in any order; the name of a state is made in the chart's. */
function inChartOrder(node: AnyStateNode, value: StateValue): StateValue {
  if (typeof value === "string") return value;
  return Object.fromEntries(
    Object.entries(node.states).flatMap(([key, child]) => {
      const inner = value[key];
      return inner === undefined ? [] : [[key, inChartOrder(child, inner)]];
    }),
  );
}
