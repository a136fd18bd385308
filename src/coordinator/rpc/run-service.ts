// The service for operators, put together of its parts: `submissions` (with `plan-submission`), `steering`, `results`, `items`,
// `retries`, `workers` and `events`.
//
// The room of the wire: beside this service `heartbeat-service`, `enrolment-service` and `work-service` (with `work-messages`,
// `pull-desk`, `pull-call` and `byte-budget`); `messages` checks what peers send, `refusals` words what is refused, `access`
// says who may call what, `leader` is the coordinator behind them.
import type { ServiceImpl } from "@connectrpc/connect";
import type { RunService } from "../../gen/rollout/v1/run_pb.ts";
import type { EventFeed } from "../../observe/event-journal.ts";
import type { Store } from "../../storage/store.ts";
import { events } from "./events.ts";
import { items } from "./items.ts";
import type { Leader } from "./leader.ts";
import { results } from "./results.ts";
import { retries } from "./retries.ts";
import { steering } from "./steering.ts";
import { submissions } from "./submissions.ts";
import { workers } from "./workers.ts";

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
