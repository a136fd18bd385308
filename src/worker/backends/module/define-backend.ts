// For authors of modules: types for the function, and nothing at run time.
import type { ItemContext } from "./item-function.ts";

/**
 * A function that executes items, for a file that a manifest names (`backend = "module"`): export what this returns as default.
 * The item is the JSON value of its line; what is returned is its output, what is thrown fails the attempt.
 */
export function defineBackend<Item = unknown, Output = unknown>(
  execute: (item: Item, context: ItemContext) => Output | Promise<Output>,
): (item: Item, context: ItemContext) => Output | Promise<Output> {
  return execute;
}
