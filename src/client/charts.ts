// The charts of a run as they move, with some items at work and the course of the run. After a break the first answer is whole again, as
// the first of all was: steps that it remembers may have been told before.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { OperatorService, WatchChartsResponseSchema } from "../gen/rollout/v1/run_pb.ts";
import type { WatchChartsResponse } from "../gen/rollout/v1/run_pb.ts";
import { followed } from "./followed.ts";
import type { FollowOptions } from "./followed.ts";
import { plainOf } from "./operator-message.ts";
import type { Plain } from "./operator-message.ts";

export type ChartNews = Plain<WatchChartsResponse>;

/** As `followed` has them. */
export async function* watchCharts(
  transport: Transport,
  options: Omit<FollowOptions, "follow">,
): AsyncGenerator<ChartNews> {
  const calls = createClient(OperatorService, transport);
  for await (const news of followed((how) => calls.watchCharts({}, how), { ...options, follow: true }))
    yield plainOf(WatchChartsResponseSchema, news);
}
