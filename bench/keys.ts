// Items of keys: beside items without, beside the program as it was (ROLLOUT_BENCH_BEFORE names its built tree), and beside what its users
// would take instead. Compared within one run. The sizes are those of the aims, unless the environment has smaller ones.
import { tmpdir } from "node:os";
import { PostgresServer } from "../test/support/postgres-server.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { besideBefore } from "./support/keys/before.ts";
import { compare, NAMES } from "./support/keys/compared.ts";
import type { Compared } from "./support/keys/compared.ts";
import { measureDarkTime } from "./support/keys/dark-time.ts";
import { measureIdleKeys, measureJoin } from "./support/keys/idle-keys.ts";
import { besideParked, newKeys, oneKey } from "./support/keys/keyed-rates.ts";
import { measureRestate } from "./support/keys/restate.ts";

const ITEMS = size("ITEMS", 100_000);
const KEYS = size("KEYS", 10_000);
const GRAPHILE_ITEMS = size("GRAPHILE_ITEMS", 5_000);
const ONE_KEY_ITEMS = size("ONE_KEY", 4_000);
const RESTATE_ITEMS = size("RESTATE_ITEMS", 20_000);
const BEHIND_PARKED = size("PARKED", 100_000);
const IDLE_KEYS = size("IDLE_KEYS", 256_000);
const STATE_BYTES = 300;
const BEFORE = process.env["ROLLOUT_BENCH_BEFORE"];
/** As a queue that writes much has it; everything is synced. */
const POSTGRES = { shared_buffers: "512MB", max_wal_size: "8GB" };
const PARTS = (process.env["ROLLOUT_BENCH_PARTS"] ?? "before,compared,rates,restate,parked,dark,idle").split(
  ",",
);

/** By name, with the aims beside them: what is missing was skipped, or not asked for. */
type Numbers = Record<string, number>;

export const keys: Bench = {
  name: "keys",
  async run(note) {
    const [numbers, skipped]: [Numbers, Record<string, string>] = [{}, {}];
    const is = (part: string): boolean => PARTS.includes(part);
    if (is("before") && BEFORE === undefined) skipped["before"] = "ROLLOUT_BENCH_BEFORE names no built tree";
    else if (is("before") && BEFORE !== undefined) {
      const { ratio: toBefore, cpuRatio } = await besideBefore(BEFORE, ITEMS, note);
      Object.assign(numbers, { "plain.ratio_to_before": toBefore, "plain.cpu_ratio_to_before": cpuRatio });
    }
    const compared = is("compared") ? await comparedWith(note) : undefined;
    if (compared !== undefined) take(numbers, compared);
    Object.assign(skipped, compared?.skipped);
    if (is("rates")) {
      const [one, fresh] = [await oneKey(ONE_KEY_ITEMS, STATE_BYTES), await newKeys(KEYS)];
      numbers["one_key.items_per_s"] = round(one);
      numbers["new_keys.ratio_to_warm"] = round(fresh.firstPerSecond / fresh.warmPerSecond, 2);
    }
    if (is("restate")) {
      const sizes = { items: RESTATE_ITEMS, keys: KEYS, oneKey: ONE_KEY_ITEMS };
      const restate = await measureRestate(sizes, note);
      if ("skipped" in restate) skipped["Restate"] = restate.skipped;
      else {
        numbers["restate.one_key_per_s"] = round(restate.oneKeyPerSecond);
        numbers["restate.many_keys_per_s"] = round(restate.manyKeysPerSecond);
        ratio(numbers, "one_key.ratio_to_restate", "one_key.items_per_s", "restate.one_key_per_s");
        ratio(numbers, "keyed_state.ratio_to_restate", "keyed_state.items_per_s", "restate.many_keys_per_s");
      }
    }
    if (is("parked")) {
      const rates = [];
      for (const behind of [0, BEHIND_PARKED, BEHIND_PARKED, 0])
        rates.push(await besideParked(ITEMS, behind));
      const [free = NaN, parked = NaN, again = NaN, freeAgain = NaN] = rates;
      note(`beside a parked key: ${rates.map((rate) => round(rate)).join(", ")} items/s`);
      numbers["parked.rest_ratio"] = round((parked + again) / (free + freeAgain), 2);
    }
    if (is("dark")) {
      const dark = await measureDarkTime();
      note(`dark time: ${JSON.stringify(dark)}`);
      numbers["dark.elsewhere_ms"] = round(dark.elsewhereMs);
      numbers["dark.ran_there_ms"] = round(dark.ranThereMs);
    }
    if (is("idle")) {
      const idle = await measureIdleKeys(IDLE_KEYS);
      numbers["idle.replay_ms"] = round(idle.replayMs);
      numbers["idle.replay_cpu_ms"] = round(idle.replayCpuMs);
      numbers["idle.bytes_per_key"] = round(idle.bytesPerKey);
      numbers["ring.join_ms"] = round(measureJoin(), 2);
    }
    for (const [name, why] of Object.entries(skipped)) note(`${name} is skipped: ${why}`);
    const figures = Object.entries(numbers).map(([name, value]): Figure => ({
      name,
      value,
      unit: unitOf(name),
    }));
    return { figures, keys: { ...numbers, skipped, runs: compared?.runs ?? [] } };
  },
};

async function comparedWith(note: (line: string) => void): Promise<Compared & { readonly peer: string }> {
  const server = await PostgresServer.start({ place: tmpdir(), settings: POSTGRES });
  try {
    const sizes = { items: ITEMS, graphileItems: GRAPHILE_ITEMS, keys: KEYS, stateBytes: STATE_BYTES };
    return await compare(server, sizes, note);
  } finally {
    await server.close();
  }
}

function take(
  numbers: Numbers,
  { rates, cpuUs, diskBytesPerItem, peer }: Compared & { readonly peer: string },
): void {
  const [plain, keyed, state] = [NAMES.plain, NAMES.keyed, NAMES.state].map((name) => rates[name] ?? NaN);
  Object.assign(numbers, {
    "plain.items_per_s": plain,
    "keyed.items_per_s": keyed,
    "keyed_state.items_per_s": state,
    "plain.cpu_us": cpuUs[NAMES.plain] ?? NaN,
    "keyed.cpu_us": cpuUs[NAMES.keyed] ?? NaN,
    "keyed_state.cpu_us": cpuUs[NAMES.state] ?? NaN,
    "keyed_state.disk_bytes_per_item": diskBytesPerItem,
  });
  ratio(numbers, "keyed.ratio_to_plain", "keyed.items_per_s", "plain.items_per_s");
  ratio(numbers, "keyed_state.ratio_to_plain", "keyed_state.items_per_s", "plain.items_per_s");
  if (rates[peer] !== undefined) numbers["graphile.items_per_s"] = rates[peer];
  ratio(numbers, "keyed.ratio_to_graphile", "keyed.items_per_s", "graphile.items_per_s");
}

/** Where both were measured. */
function ratio(numbers: Numbers, name: string, one: string, other: string): void {
  const [own, base] = [numbers[one], numbers[other]];
  if (own !== undefined && base !== undefined) numbers[name] = round(own / base, 2);
}

function unitOf(name: string): string {
  if (name.includes("ratio")) return "×";
  if (name.endsWith("_per_s")) return "1/s";
  if (name.endsWith("_ms")) return "ms";
  return name.endsWith("_us") ? "µs" : "bytes";
}

function size(name: string, unless: number): number {
  return Number(process.env[`ROLLOUT_BENCH_${name}`] ?? unless);
}
