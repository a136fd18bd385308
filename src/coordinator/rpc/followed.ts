// A journal as it is read over the wire: what is remembered, then what comes, until the caller or the leadership has gone.
import { failure } from "../../base/errors.ts";
import type { Journal, Page } from "../../observe/journal.ts";
import type { Leader } from "./leader.ts";

/** The first page comes at once, so that whoever asks knows that nothing has happened. Throws overloaded for one reader too many. */
export async function* pagesOf<Entry>(
  { stopping }: Leader,
  journal: Pick<Journal<Entry>, "remembered" | "follow" | "readersMax">,
  {
    follow,
    signal,
    readers,
  }: { readonly follow: boolean; readonly signal: AbortSignal; readonly readers: string },
): AsyncGenerator<Page<Entry>> {
  // It begins before what is remembered is read, and both happen in one go: nothing is missed or told twice.
  const reader = follow ? journal.follow() : undefined;
  const page = journal.remembered();
  if (follow && reader === undefined)
    throw failure("overloaded", { what: readers, limit: journal.readersMax });
  const end = (): void => reader?.end();
  stopping.addEventListener("abort", end);
  signal.addEventListener("abort", end);
  if (stopping.aborted || signal.aborted) end();
  try {
    yield page;
    for (let next = await reader?.next(); next !== undefined; next = await reader?.next()) yield next;
  } finally {
    end();
    stopping.removeEventListener("abort", end);
    signal.removeEventListener("abort", end);
  }
}
