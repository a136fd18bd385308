// The service for operators, put together of its parts: `submissions` (with `plan-submission`), `steering`, `results`, `items`,
// `retries` and `workers`; events come from here.
//
// The room of the wire: beside this service `heartbeat-service`, `enrolment-service` and `work-service` (with `work-messages`,
// `pull-desk`, `pull-call` and `byte-budget`); `messages` checks what peers send, `refusals` words what is refused, `access`
// says who may call what, `leader` is the coordinator behind them.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { RunService } from "../../gen/rollout/v1/run_pb.ts";
import type { EventFeed, EventPage } from "../../observe/event-journal.ts";
import type { Store } from "../../storage/store.ts";
import { items } from "./items.ts";
import type { Leader } from "./leader.ts";
import { results } from "./results.ts";
import { retries } from "./retries.ts";
import { steering } from "./steering.ts";
import { submissions } from "./submissions.ts";
import { workers } from "./workers.ts";

/** Lines in one message: what is remembered comes in several. */
const LINES_MAX = 100;

/** `store` is read for what is asked; nothing is written past the reactor. */
export function runService(
  leader: Leader,
  store: Store,
  feed: EventFeed | undefined,
): ServiceImpl<typeof RunService> {
  return {
    ...workers(leader),
    ...submissions(leader, store),
    ...steering(leader),
    ...results(leader, store),
    ...retries(leader, store),
    ...items(leader, store),
    ...events(leader, feed),
  };
}

/** Events remembered, then those that happen. Without a feed nothing is remembered, and nothing follows. */
function events(
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
