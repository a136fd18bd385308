// The function that executes items of the backends' contract as the `module` backend has it.
import type { ItemContext } from "../../src/worker/backends/module/item-function.ts";
import { behave } from "./item-behaviour.ts";
import type { ItemBehaviour } from "./item-behaviour.ts";

export async function execute(item: unknown, context: ItemContext): Promise<unknown> {
  const behaved = await behave(item as ItemBehaviour, {
    checkpoint: (context.checkpoint as string | undefined) ?? "",
    save: context.saveCheckpoint,
    complain: (words) => console.error(words),
    ignoreEnd: () => {
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
    },
  });
  if (behaved.kind === "failed") throw new Error(behaved.words);
  return behaved.kind === "bytes" ? behaved.bytes : behaved.value;
}
