// Where a chart stands, as a row has it. Rows of which there are few carry the chart that wrote them: an older chart's are migrated as
// they are read, an unknown one's are refused.
import type { AnyStateMachine } from "xstate";
import type { Chart } from "../../machines/migration.ts";
import { assert } from "../base/assert.ts";
import type { Field, Fields, Tuple } from "../storage/fields.ts";
import { corrupt } from "../storage/records.ts";
import type { Store } from "../storage/store.ts";
import type { CompiledChart, Row } from "./compile.ts";
import { stamp, upgrade } from "./snapshot.ts";

/** Where a chart stands, and which version of it says so. */
export interface Standing {
  readonly version: string;
  readonly structure: string;
  readonly state: string;
  readonly context: unknown;
}

export function standingOf<Context>(
  machine: AnyStateMachine,
  compiled: { nameOf(row: Row<Context>): string },
  row: Row<Context>,
): Standing {
  const { version, structure } = stamp(machine);
  return { version, structure, state: compiled.nameOf(row), context: row.context };
}

/** The row as the current version of its chart has it. Throws store_newer or store_corrupt, naming the key. */
export function rowFrom<Context>(
  known: Chart,
  compiled: Pick<CompiledChart<Context, never, never>, "indexOf">,
  { version, structure, state, context }: Standing,
  { store, key }: { readonly store: Store; readonly key: string },
): Row<Context> {
  const chart = known.machine.id;
  const found = { chart, version, structure, value: state, context };
  const { value, context: current } = upgrade(found, known, { path: store.location, key });
  assert(typeof value === "string", "charts that stand in rows have no states in states");
  const index = compiled.indexOf(value) ?? corrupt(store, key, `no state ${value} in chart ${chart}`);
  return { state: index, context: current as Context };
}

export function standingTuple({ version, structure, state, context }: Standing): Tuple {
  return [version, structure, state, context as Field];
}

export function standingFrom(fields: Fields): Standing {
  return {
    ...{ version: fields.text(0), structure: fields.text(1) },
    ...{ state: fields.text(2), context: fields.plain(3) },
  };
}
