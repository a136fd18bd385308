// A program that executes items of the backends' contract as the `process` backend has it: lines in, lines out.
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { behave } from "../../support/item-behaviour.ts";
import type { Behaved, ItemBehaviour } from "../../support/item-behaviour.ts";

interface Request {
  readonly type: string;
  readonly id: number;
  readonly payload: ItemBehaviour;
  readonly checkpoint: string | null;
  readonly slot: number;
  readonly state?: unknown;
}

let isDeaf = false;
const stayed = (): boolean => isDeaf;
/** Items that can be cancelled: one that hangs cannot. */
const yielding = new Set<number>();
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const say = (message: object): void => writeFileSync(1, `${JSON.stringify(message)}\n`);

function answer(id: number, behaved: Behaved, learned: { readonly state?: string | null }): void {
  if (behaved.kind === "value") say({ type: "result", id, output: behaved.value, ...learned });
  else if (behaved.kind === "bytes")
    say({ type: "result", id, output_base64: behaved.bytes.toString("base64") });
  else say({ type: "error", id, message: behaved.words });
}

function execute({ id, payload, checkpoint, slot, state }: Request): void {
  let learned: { readonly state?: string | null } = {};
  if (payload.do !== "hang") yielding.add(id);
  void behave(payload, {
    checkpoint: Buffer.from(checkpoint ?? "", "base64").toString(),
    slot,
    save: (saved) => say({ type: "checkpoint", id, checkpoint: base64(saved) }),
    state: state ?? null,
    learn: (next) => {
      learned = { state: next };
    },
    complain: (words) => writeFileSync(2, `${words}\n`),
    ignoreEnd: () => {
      isDeaf = true;
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
    },
  }).then((behaved) => answer(id, behaved, learned));
}

say({ type: "ready" });
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  if (request.type === "item") execute(request);
  if (request.type === "cancel" && yielding.has(request.id)) say({ type: "cancelled", id: request.id });
}
// A deaf one has a timer that keeps it.
if (!stayed()) process.exit();
