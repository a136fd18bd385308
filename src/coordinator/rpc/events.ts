// Events for operators: what is remembered of what happened, then what happens, for as long as they stay.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { RunService } from "../../gen/rollout/v1/run_pb.ts";
import type { EventFeed, EventPage } from "../../observe/event-journal.ts";
import type { Leader } from "./leader.ts";

/** Lines in one message: what is remembered comes in several. */
const LINES_MAX = 100;

/** Without a feed nothing is remembered, and nothing follows. */
export function events(
  leader: Leader,
  feed: EventFeed | undefined,
): Pick<ServiceImpl<typeof RunService>, "watchEvents"> {
  return {
    async *watchEvents({ follow }, context) {
      if (feed === undefined) return;
      // It begins before what is remembered is read, and both happen in one go: nothing is missed or told twice.
      const reader = follow ? feed.follow() : undefined;
      const page = feed.remembered();
      if (follow && reader === undefined)
        throw failure("overloaded", { what: "those who follow the events", limit: feed.readersMax });
      const end = (): void => reader?.end();
      leader.stopping.addEventListener("abort", end);
      context.signal.addEventListener("abort", end);
      if (leader.stopping.aborted || context.signal.aborted) end();
      try {
        // The first answer comes at once, so that whoever asks knows that nothing has happened.
        yield* messages(leader, page);
        for (let next = await reader?.next(); next !== undefined; next = await reader?.next())
          yield* messages(leader, next);
      } finally {
        end();
        leader.stopping.removeEventListener("abort", end);
        context.signal.removeEventListener("abort", end);
      }
    },
  };
}

function* messages(
  { envelope: coordinator }: Leader,
  { lines, dropped }: EventPage,
): Generator<{ coordinator: typeof coordinator; events: string[]; dropped: bigint }> {
  yield { coordinator, events: lines.slice(0, LINES_MAX), dropped: BigInt(dropped) };
  for (let at = LINES_MAX; at < lines.length; at += LINES_MAX)
    yield { coordinator, events: lines.slice(at, at + LINES_MAX), dropped: 0n };
}
