// The cost of releases: of the room when there is none, and of one that tries a candidate on a tenth of the items by three metrics. Compared within
// one run, in turn. Beside the program as it was before there were releases where ROLLOUT_BENCH_BEFORE names its built tree.
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { alternate, median } from "./support/alternating.ts";
import { runsBeside } from "./support/keys/before.ts";
import { measureInMemory } from "./support/releases/in-memory.ts";
import { measureRoom } from "./support/releases/room-cost.ts";
import { measureTrial } from "./support/releases/trial-run.ts";

const ITEMS = size("ITEMS", 100_000);
const ALTERNATIONS = size("ALTERNATIONS", 10);
const BEFORE = process.env["ROLLOUT_BENCH_BEFORE"];
const PARTS = (process.env["ROLLOUT_BENCH_PARTS"] ?? "before,rolling,idle,room,rows,replay").split(",");
/** Turns are counted by themselves: each has one result. */
const ROOM_TURNS = size("TURNS", 20_000);
const MANY_STAGES = 16;
const FEW_STAGES = 2;

type Note = (line: string) => void;
/** By name; what is missing was skipped, or not asked for. */
type Numbers = Record<string, number>;

export const release: Bench = {
  name: "release",
  async run(note) {
    const [numbers, skipped]: [Numbers, Record<string, string>] = [{}, {}];
    const is = (part: string): boolean => PARTS.includes(part);
    if (is("before") && BEFORE === undefined) skipped["before"] = "ROLLOUT_BENCH_BEFORE names no built tree";
    else if (is("before") && BEFORE !== undefined) await besideBefore(BEFORE, numbers, note);
    if (is("rolling")) await besideNone(numbers, note);
    if (is("idle")) await besideRemoved(numbers, note);
    if (is("room")) {
      const { resultUs, turnUs, rowsPerTurn } = measureRoom(ITEMS, ROOM_TURNS);
      numbers["room.result_cpu_us"] = round(resultUs, 3);
      numbers["room.turn_cpu_us"] = round(turnUs, 2);
      numbers["room.turn_rows"] = round(rowsPerTurn, 2);
    }
    if (is("rows")) await countRows(numbers, note);
    if (is("replay")) await countReads(numbers, note);
    for (const [name, why] of Object.entries(skipped)) note(`${name} is skipped: ${why}`);
    const figures = Object.entries(numbers).map(([name, value]): Figure => ({
      name,
      value,
      unit: unitOf(name),
    }));
    return { figures, release: { ...numbers, skipped } };
  },
};

/** No release, by this program and by the one before. */
async function besideBefore(tree: string, numbers: Numbers, note: Note): Promise<void> {
  const { own, before } = await runsBeside(tree, ITEMS, note);
  const pairs = await alternate(ALTERNATIONS, own, before);
  const ratioOf = (value: (run: Awaited<ReturnType<typeof own>>) => number): number =>
    round(median(pairs.map(({ one, other }) => value(one) / value(other))), 3);
  numbers["none.ratio_to_before"] = ratioOf(({ endToEndPerSecond }) => endToEndPerSecond);
  numbers["none.execute_ratio_to_before"] = ratioOf(({ executePerSecond }) => executePerSecond);
  numbers["none.cpu_ratio_to_before"] = ratioOf(({ lag }) => lag.cpu_ms);
}

/** Processes over TLS, with a release and without. */
async function besideNone(numbers: Numbers, note: Note): Promise<void> {
  const measured = (isTried: boolean) => async () => {
    const run = await measureTrial(ITEMS, isTried);
    note(`${isTried ? "with a release" : "without one"}: ${JSON.stringify(run)}`);
    return run;
  };
  const pairs = await alternate(ALTERNATIONS, measured(true), measured(false));
  numbers["rolling.items_per_s"] = round(median(pairs.map(({ one }) => one.endToEndPerSecond)));
  numbers["none.items_per_s"] = round(median(pairs.map(({ other }) => other.endToEndPerSecond)));
  const ratios = pairs.map(({ one, other }) => one.endToEndPerSecond / other.endToEndPerSecond);
  numbers["rolling.ratio_to_none"] = round(median(ratios), 3);
  const costs = pairs.map(({ one, other }) => one.coordinatorUs / other.coordinatorUs);
  numbers["rolling.coordinator_cpu_ratio_to_none"] = round(median(costs), 3);
  numbers["rolling.judged_share"] = round(median(pairs.map(({ one }) => one.judged)) / ITEMS, 3);
}

/** The coordinator's main thread alone: without a release, and without the room. */
async function besideRemoved(numbers: Numbers, note: Note): Promise<void> {
  const measured = (room: "idle" | "removed") => async () => {
    const { cpuUs } = await measureInMemory(ITEMS, room);
    note(`in memory, the room ${room}: ${round(cpuUs, 2)} µs an item`);
    return cpuUs;
  };
  // The first run is of a program that is cold.
  await measureInMemory(Math.ceil(ITEMS / 10), "idle");
  const pairs = await alternate(ALTERNATIONS, measured("idle"), measured("removed"));
  numbers["none.main_thread_cpu_us"] = round(median(pairs.map(({ one }) => one)), 2);
  numbers["none.main_thread_cpu_ratio_to_removed"] = round(
    median(pairs.map(({ one, other }) => one / other)),
    3,
  );
}

async function countRows(numbers: Numbers, note: Note): Promise<void> {
  const [rolling, none] = [await measureInMemory(ITEMS, "rolling"), await measureInMemory(ITEMS, "idle")];
  note(`with a release: ${JSON.stringify(rolling)}; without one: ${JSON.stringify(none)}`);
  numbers["rolling.judged"] = rolling.judged;
  numbers["rolling.rows_per_judged"] = round((rolling.rows - none.rows) / rolling.judged, 2);
  numbers["rolling.release_rows_per_turn"] = round(rolling.releaseWrites / rolling.batches, 2);
}

async function countReads(numbers: Numbers, note: Note): Promise<void> {
  const items = Math.ceil(ITEMS / 10);
  const none = (await measureInMemory(items, "idle")).replay;
  const few = (await measureInMemory(items, "rolling", FEW_STAGES)).replay;
  const many = (await measureInMemory(items, "rolling", MANY_STAGES)).replay;
  note(
    `replay without a release, with ${FEW_STAGES} stages and ${MANY_STAGES}: ${JSON.stringify([none, few, many])}`,
  );
  numbers["replay.reads_per_stage"] = round((many.reads - few.reads) / (MANY_STAGES - FEW_STAGES), 2);
  numbers["replay.reads_of_release"] = few.reads - none.reads;
  numbers["replay.none_ms"] = round(none.ms, 2);
  numbers["replay.many_stages_ms"] = round(many.ms, 2);
}

function unitOf(name: string): string {
  if (name.includes("ratio") || name.endsWith("_share")) return "×";
  if (name.endsWith("_per_s")) return "1/s";
  if (name.endsWith("_ms")) return "ms";
  if (name.endsWith("_us")) return "µs";
  return name.includes("rows") ? "rows" : name.includes("reads") ? "reads" : "attempts";
}

function size(name: string, unless: number): number {
  return Number(process.env[`ROLLOUT_BENCH_${name}`] ?? unless);
}
