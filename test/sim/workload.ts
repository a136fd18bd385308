// The work of a simulated run, and how each of its items behaves. The payload says which kind an item is, so that its
// executor needs to know nothing else.
import { createHash } from "node:crypto";
import type { Random } from "../../src/base/random.ts";
import { itemIdOf, itemIdText } from "../../src/coordinator/ledger/place.ts";
import { between, happens } from "./world.ts";

/**
 * `ok` succeeds. `flaky` fails once or twice, then succeeds. `bad` always fails. `big` has an output over the limit. `slow`
 * takes seconds. `deadly` kills the process that executes it, the first time. `toxic` takes down what executes everything
 * else at its worker, unless it is alone there.
 */
export type ItemKind = "ok" | "flaky" | "bad" | "big" | "slow" | "deadly" | "toxic";

export interface WorkItem {
  readonly payload: Uint8Array;
  readonly priority: number;
  /** Empty when it has none. */
  readonly key: string;
  readonly idText: string;
}

export const TASK_DIGEST = createHash("sha256").update("sim").digest();
/** The largest output that a worker takes. */
export const OUTPUT_MAX_BYTES = 512;
const KINDS = ["ok", "flaky", "bad", "big", "slow", "deadly", "toxic"] as const satisfies readonly ItemKind[];
const BATCHES_MAX = 4;
const PRIORITIES = [-3, 0, 0, 0, 7];

export interface Workload {
  /** In the order of submission; some lines come more than once. */
  readonly batches: readonly (readonly WorkItem[])[];
  /** Every item that there will be, by the text of its id. */
  readonly kinds: ReadonlyMap<string, ItemKind>;
}

export interface DrawnWork {
  readonly items: number;
  /** Beside `ok`, with which chance for each item. */
  readonly kinds: Partial<Record<ItemKind, number>>;
  /** How many keys the items have; 0: they have none. */
  readonly keys: number;
  /** Where there are keys, one of so many items has none. */
  readonly unkeyedEvery: number;
}

export function drawWorkload(
  random: Random,
  { items: count, kinds, keys, unkeyedEvery }: DrawnWork,
): Workload {
  const lines: string[] = [];
  for (let number = 0; number < count; number++) {
    const copied = happens(random, 0.1) ? lines[Math.floor(random.unit() * number)] : undefined;
    lines.push(copied ?? `${drawKind(random, kinds)}:${number}`);
  }
  const seen = new Map<string, number>();
  const items = lines.map((text): WorkItem => {
    const payload = Buffer.from(text);
    const sampleIndex = seen.get(text) ?? 0;
    seen.set(text, sampleIndex + 1);
    // Some have none, and go among the others.
    const at = Number(text.split(":")[1]);
    const key = keys === 0 || at % unkeyedEvery === unkeyedEvery - 1 ? "" : `k${at % keys}`;
    const idText = itemIdText(itemIdOf({ taskDigest: TASK_DIGEST, payload, key, sampleIndex }));
    const priority = PRIORITIES[Math.floor(random.unit() * PRIORITIES.length)] ?? 0;
    return { payload, priority, key, idText };
  });
  const batchSize = Math.ceil(count / between(random, 1, BATCHES_MAX));
  const batches: WorkItem[][] = [];
  for (let at = 0; at < count; at += batchSize) batches.push(items.slice(at, at + batchSize));
  return { batches, kinds: new Map(items.map(({ idText, payload }) => [idText, kindOf(payload)])) };
}

export function kindOf(payload: Uint8Array): ItemKind {
  const [word] = Buffer.from(payload).toString().split(":");
  return KINDS.find((kind) => kind === word) ?? "ok";
}

function drawKind(random: Random, kinds: Partial<Record<ItemKind, number>>): ItemKind {
  let drawn = random.unit();
  for (const kind of KINDS) {
    drawn -= kinds[kind] ?? 0;
    if (drawn < 0) return kind;
  }
  return "ok";
}
