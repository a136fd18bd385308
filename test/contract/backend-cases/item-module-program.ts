// The function that executes items of the backends' contract as the `module` backend has it.
import type { ItemContext } from "../../../src/worker/backends/module/item-function.ts";
import { behave } from "../../support/item-behaviour.ts";
import type { ItemBehaviour } from "../../support/item-behaviour.ts";

export async function execute(item: unknown, context: ItemContext): Promise<unknown> {
  let learned: { readonly state: string | null } | undefined;
  const behaved = await behave(item as ItemBehaviour, {
    checkpoint: (context.checkpoint as string | undefined) ?? "",
    slot: context.env["ROLLOUT_SLOT"],
    save: context.saveCheckpoint,
    state: context.state ?? null,
    learn: (state) => {
      learned = { state };
    },
    complain: (words) => console.error(words),
    ignoreEnd: () => {
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
    },
  });
  if (behaved.kind === "failed") throw new Error(behaved.words);
  const output = behaved.kind === "bytes" ? behaved.bytes : behaved.value;
  return learned === undefined ? output : context.withState(output, learned.state);
}
