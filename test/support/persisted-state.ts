// Everything of a coordinator's state that is meant to survive it (C4); the rest is measured anew.
import { isDeepStrictEqual } from "node:util";
import { actorTuple } from "../../src/coordinator/keys/actor.ts";
import type { Actor } from "../../src/coordinator/keys/actor.ts";
import { timerRecord } from "../../src/coordinator/keys/timer-record.ts";
import { keyChart } from "../../src/coordinator/keys/key.ts";
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import { runChart } from "../../src/coordinator/run/run.ts";
import type { Releases } from "../../src/coordinator/release/releases.ts";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import { isTrusted, trustChart, workerChart } from "../../src/coordinator/turn/state.ts";

/** The first part in which what was stored differs from the live state, with both values; undefined when they are the same. */
export function difference(stored: CoordinatorState, live: CoordinatorState): string | undefined {
  const [left, right] = [persistedOf(stored), persistedOf(live)];
  // A test may have put a room of fleets in that no replay reads.
  if (stored.fleets === undefined) left["fleets"] = right["fleets"];
  for (const [name, value] of Object.entries(left))
    if (!isDeepStrictEqual(value, right[name]))
      return `${name}: stored ${JSON.stringify(value)}, live ${JSON.stringify(right[name])}`;
  return undefined;
}

function persistedOf({
  workers,
  workersCount,
  keys,
  ledger: { tally, running },
  run,
  task,
  countedFrom,
  releases,
  fleets,
}: CoordinatorState): Record<string, unknown> {
  const { cursors, ...numbers } = tally.numbers;
  return {
    run: [runChart.states[run.state], run.context],
    task: task && { ...task, digest: hex(task.digest) },
    countedFrom,
    releases: releasesOf(releases),
    // Experience is written now and then.
    fleets: fleets?.all.map(({ name, row, machineMs, scale, launches, allocations }) => ({
      ...{ name, row, machineMs, scale, launches },
      allocations: [...allocations.values()]
        .map(({ id, slots, row: at, log, request }) => ({ id, slots, at, log, request }))
        .sort((one, other) => (one.id < other.id ? -1 : 1)),
    })),
    numbers,
    cursors: [...cursors].sort(([one], [other]) => one - other),
    running: [...running.values()]
      .map(({ place, id, number, row, checksum }) => ({ place, id: itemIdText(id), number, row, checksum }))
      .sort((one, other) => (one.place < other.place ? -1 : 1)),
    keys: [...keys.table]
      .map(({ text, row, head, commit, hasState, checksum, stateChecksum, why, actor }) => ({
        ...{ text, state: keyChart.states[row.state], context: row.context, head: head?.place },
        ...{ commit, hasState, checksum, stateChecksum: hasState ? stateChecksum : null, why },
        actor: actor && [actorTuple(actor), timersOf(actor)],
      }))
      .sort((one, other) => (one.text < other.text ? -1 : 1)),
    checkpoints: [...keys.warmth.checkpoints].sort(([one], [other]) => one - other),
    keyNumbers: keys.isInUse ? keys.rows.numbers : null,
    keyCounts: keys.counts,
    inside: keys.rows.inside,
    timers: [keys.timers.armed, keys.timers.bytes, keys.timers.nextEventMs],
    counted: [workersCount.count, hex(workersCount.entry().value)],
    workers: [...workers.values()]
      .map((row) => ({
        id: row.id,
        state: workerChart.states[row.chart.state],
        context: row.chart.context,
        trust: trustChart.states[row.trust.state],
        failures: isTrusted(row) ? 0 : row.trust.context.failuresInRow,
        slots: row.slots,
        // The task that each of them runs is in no row.
        plugins: row.plugins.map(({ name, version, stateVersion }) => ({ name, version, stateVersion })),
        load: row.load,
        registeredAtWallMs: row.registeredAtWallMs,
        sequence: row.sequence,
        stored: hex(row.stored),
        held: [...row.held.values()].map(({ place }) => place).sort(),
      }))
      .sort((one, other) => (one.id < other.id ? -1 : 1)),
  };
}

function timersOf({ timers, retirement }: Actor): unknown[] {
  const all = [...timers.values(), ...(retirement === undefined ? [] : [retirement])];
  return all
    .sort((one, other) => one.number - other.number)
    .map((timer) =>
      timerRecord.encode(timer).map((field) => (field instanceof Uint8Array ? hex(field) : field)),
    );
}

/** Attempts of an earlier leader are judged by nobody, so how many of them are open is told by the rows of items alone. */
function releasesOf({ latest, reached }: Releases): unknown {
  if (latest === undefined) return null;
  const { id, row, stages, stable, candidate, terms, createdAtMs, endedAtMs, isWaiting } = latest;
  return {
    ...{ id, row, createdAtMs, endedAtMs, isWaiting, terms },
    versions: [stable, candidate, reached].map((one) => one && [one.version, hex(one.digest)]),
    stages: stages.map(({ row: at, counts: { stable: old, candidate: tried, revision }, stored }) => ({
      ...{ at, old, tried, revision, stored: hex(stored ?? undefined) },
    })),
  };
}

function hex(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "" : Buffer.from(bytes).toString("hex");
}
