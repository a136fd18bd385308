// Durable actors: beside a module that does nothing on the same slots, and beside Restate's virtual objects in both of its settings, in one run.
// The sizes are those of the aims, unless the environment has smaller ones.
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { effectCluster } from "./support/actors/effect.ts";
import { timersLateness } from "./support/actors/lateness.ts";
import { eventsPerSecond, moduleItemsPerSecond, sizedEventsPerSecond } from "./support/actors/rates.ts";
import { idleRoundTrips } from "./support/actors/round-trips.ts";
import { measureRestate } from "./support/keys/restate.ts";

const EVENTS = size("EVENTS", 50_000);
const ACTORS = size("ACTORS", 10_000);
const ONE_ACTOR = size("ONE_ACTOR", 2_000);
const IDLE = size("IDLE", 500);
const TIMERS = size("TIMERS", 100_000);
const SIZED_EVENTS = size("SIZED_EVENTS", 2_000);
const RESTATE_ITEMS = size("RESTATE_ITEMS", 20_000);
const FEW_TIMERS = 100;
const SIZED_ACTORS = 100;
const STATE_BYTES = [300, 4_096, 65_536, 262_144 - 1_024] as const;
const PARTS = (process.env["ROLLOUT_BENCH_PARTS"] ?? "module,rates,idle,timers,states,restate,effect").split(
  ",",
);

type Numbers = Record<string, number>;

export const actors: Bench = {
  name: "actors",
  async run(note) {
    const [numbers, skipped]: [Numbers, Record<string, string>] = [{}, {}];
    const is = (part: string): boolean => PARTS.includes(part);
    if (is("module")) await besideModule(numbers, note);
    if (is("rates")) numbers["one_actor.events_per_s"] = round(await eventsPerSecond(ONE_ACTOR, 1));
    if (is("idle")) take(numbers, "idle_round_trip", await idleRoundTrips(IDLE));
    if (is("states")) await curve(numbers, note);
    if (is("timers"))
      for (const armed of [FEW_TIMERS, TIMERS]) {
        const late = await timersLateness(armed);
        if (late === undefined) skipped[`timers.${armed}`] = "no timer was armed";
        else take(numbers, `timers.${armed}.late`, late);
      }
    if (is("restate")) await besideRestate(numbers, skipped, note);
    if (is("effect")) await besideEffect(numbers, skipped, note);
    for (const [name, why] of Object.entries(skipped)) note(`${name} is skipped: ${why}`);
    const figures = Object.entries(numbers).map(([name, value]): Figure => ({
      name,
      value,
      unit: unitOf(name),
    }));
    return { figures, actors: { ...numbers, skipped } };
  },
};

/** In turn, in both directions. */
async function besideModule(numbers: Numbers, note: (line: string) => void): Promise<void> {
  const [events, items]: [number[], number[]] = [[], []];
  const measureModule = async (): Promise<void> => void items.push(await moduleItemsPerSecond(EVENTS));
  const measureActors = async (): Promise<void> => void events.push(await eventsPerSecond(EVENTS, ACTORS));
  for (const measure of [measureModule, measureActors, measureActors, measureModule]) {
    await measure();
    note(
      `module ${items.map((rate) => round(rate)).join(", ")}; actors ${events.map((rate) => round(rate)).join(", ")} a second`,
    );
  }
  numbers["module.items_per_s"] = round(mean(items));
  numbers["events_per_s"] = round(mean(events));
  numbers["ratio_to_module"] = round(mean(events) / mean(items), 2);
}

async function curve(numbers: Numbers, note: (line: string) => void): Promise<void> {
  for (const bytes of STATE_BYTES) {
    const perSecond = await sizedEventsPerSecond(SIZED_EVENTS, SIZED_ACTORS, bytes);
    note(`states of ${bytes} bytes: ${round(perSecond)} events a second`);
    numbers[`states.${bytes}.events_per_s`] = round(perSecond);
  }
}

async function besideRestate(
  numbers: Numbers,
  skipped: Record<string, string>,
  note: (line: string) => void,
): Promise<void> {
  const restate = await measureRestate(
    { items: RESTATE_ITEMS, keys: ACTORS, oneKey: ONE_ACTOR, idle: IDLE },
    note,
  );
  if ("skipped" in restate) return void (skipped["Restate"] = restate.skipped);
  numbers["restate.events_per_s"] = round(restate.manyKeysPerSecond);
  numbers["restate.one_per_s"] = round(restate.oneKeyPerSecond);
  numbers["restate.idle_round_trip.p50_ms"] = round(restate.idleMs.p50, 2);
  numbers["restate.idle_round_trip.p99_ms"] = round(restate.idleMs.p99, 2);
  ratio(numbers, "ratio_to_restate", "events_per_s", "restate.events_per_s");
  ratio(numbers, "one_actor.ratio_to_restate", "one_actor.events_per_s", "restate.one_per_s");
  for (const p of ["p50", "p99"])
    ratio(
      numbers,
      `idle_round_trip.${p}_ratio_to_restate`,
      `idle_round_trip.${p}_ms`,
      `restate.idle_round_trip.${p}_ms`,
    );
}

async function besideEffect(
  numbers: Numbers,
  skipped: Record<string, string>,
  note: (line: string) => void,
): Promise<void> {
  const effect = await effectCluster({ events: RESTATE_ITEMS, keys: ACTORS }, note);
  if ("skipped" in effect) return void (skipped[effect.name] = effect.skipped);
  numbers["effect.events_per_s"] = round(effect.perSecond);
  ratio(numbers, "ratio_to_effect", "events_per_s", "effect.events_per_s");
}

/** Where both were measured. */
function ratio(numbers: Numbers, name: string, one: string, other: string): void {
  const [own, base] = [numbers[one], numbers[other]];
  if (own !== undefined && base !== undefined) numbers[name] = round(own / base, 2);
}

function take(numbers: Numbers, name: string, sorted: readonly number[]): void {
  for (const [p, share] of [
    ["p50", 0.5],
    ["p99", 0.99],
  ] as const)
    numbers[`${name}.${p}_ms`] = round(sorted[Math.floor(share * sorted.length)] ?? NaN, 2);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function unitOf(name: string): string {
  if (name.includes("ratio")) return "×";
  return name.endsWith("_per_s") ? "1/s" : "ms";
}

function size(name: string, unless: number): number {
  return Number(process.env[`ROLLOUT_BENCH_${name}`] ?? unless);
}
