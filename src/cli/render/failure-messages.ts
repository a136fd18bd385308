// Why items fail, in their own words: the most frequent messages with how often each was met and an item to look at. The item comes
// before the message, so that it is still there when a narrow terminal cuts the line.
import { printable } from "../../base/safe-text.ts";
import type { FailureMessage } from "../../client/run-status.ts";
import { number } from "./quantities.ts";

/** As many digits as name one item among many millions; `rollout explain` takes them. */
const ITEM_DIGITS = 12;

/** Lines without endings, `count` at most. Attempts that are made again are told of while nothing else has come of anything. */
export function failureMessageLines(
  messages: readonly FailureMessage[],
  { done, failed }: { readonly done: number; readonly failed: number },
  count: number,
): string[] {
  const isAllThereIs = done + failed === 0;
  return messages
    .filter(({ items, attempts }) => items > 0 || (isAllThereIs && attempts > 0))
    .slice(0, count)
    .map(lineOf);
}

function lineOf({ failureClass, message, items, attempts, item }: FailureMessage): string {
  const name = item.slice(0, ITEM_DIGITS);
  const what =
    items > 0
      ? `${number(items)} ${printable(failureClass)}, such as item ${name}`
      : `${number(attempts)} ${attempts === 1 ? "attempt" : "attempts"} ended as ${printable(failureClass)}, such as of item ${name}`;
  return message === "" ? what : `${what}: ${printable(message)}`;
}
