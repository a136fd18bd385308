// Items without keys, with keys, and with keys that keep a state, beside those of graphile-worker with a named queue for each key: in one run, in
// turn, in both directions.
import { round } from "../figure.ts";
import { measure } from "../peers/contender.ts";
import type { Contender, Measured } from "../peers/contender.ts";
import { graphile, rollout } from "../peers/contenders.ts";
import type { PostgresServer } from "../../../test/support/postgres-server.ts";

const WORKERS = 2;
const ROUNDS = 2;

export interface Compared {
  readonly rates: Readonly<Record<string, number>>;
  /** Processor time of all processes of ours for an item, in microseconds. */
  readonly cpuUs: Readonly<Record<string, number>>;
  readonly diskBytesPerItem: number;
  readonly skipped: Readonly<Record<string, string>>;
  readonly runs: readonly Measured[];
}

export interface Sizes {
  readonly items: number;
  /** For a job, graphile-worker looks at all that wait in named queues: with many it takes seconds. */
  readonly graphileItems: number;
  readonly keys: number;
  readonly stateBytes: number;
}

export const NAMES = {
  plain: "plain",
  before: "plain, before",
  keyed: "keyed",
  state: "keyed, state",
} as const;

export async function compare(
  server: PostgresServer,
  { items, graphileItems, keys, stateBytes }: Sizes,
  note: (line: string) => void,
): Promise<Compared & { readonly peer: string }> {
  let diskBytes = 0;
  const peer = graphile(server, note, keys);
  const contenders: Contender[] = [
    rollout(NAMES.plain),
    rollout(NAMES.keyed, { keys }),
    rollout(NAMES.state, {
      ...{ keys, stateBytes },
      onEnd: (run, count) => (diskBytes = run.coordinator.databaseBytes / count),
    }),
  ];
  const skipped: Record<string, string> = {};
  if ("skipped" in peer) skipped[peer.name] = peer.skipped;
  else contenders.push(peer);
  const countOf = ({ name }: Contender): number => (name === peer.name ? graphileItems : items);
  const runs: Measured[] = [];
  for (let turn = 0; turn < ROUNDS; turn++)
    for (const contender of turn % 2 === 0 ? contenders : contenders.toReversed()) {
      const measured = await measure(contender, {
        mode: "phased",
        workers: WORKERS,
        items: countOf(contender),
      });
      note(JSON.stringify(measured));
      runs.push(measured);
    }
  const names = [...new Set(runs.map(({ contender }) => contender))];
  const of = (name: string, value: (run: Measured) => number): number =>
    mean(runs.filter(({ contender }) => contender === name).map(value));
  return {
    peer: peer.name,
    rates: Object.fromEntries(names.map((name) => [name, round(of(name, (run) => run.itemsPerSecond))])),
    cpuUs: Object.fromEntries(
      names.map((name) => [
        name,
        round(
          of(name, (run) => cpuOf(run, items)),
          1,
        ),
      ]),
    ),
    diskBytesPerItem: round(diskBytes),
    skipped,
    runs,
  };
}

/** The producer is no part of what is compared. */
function cpuOf({ processes }: Measured, items: number): number {
  const seconds = Object.entries(processes)
    .filter(([name]) => name !== "producer")
    .reduce((sum, [, { cpuSeconds }]) => sum + cpuSeconds, 0);
  return (seconds / items) * 1e6;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
