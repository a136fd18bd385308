// `make smoke-ha`: three coordinators over one Postgres and three workers, as real processes over mutual TLS on this machine. The leader is
// killed in the middle of the work. Says what happens as it happens, and ends with `smoke ok: …`, or loudly. docs/testing.md
import { findFreePort } from "../src/base/address.ts";
import { sleep, systemClock } from "../src/base/clock.ts";
import type { RolloutClient } from "../src/compose/rollout-client.ts";
import { inNewDatabase } from "../test/support/postgres-database.ts";
import { sharedPostgresUrl } from "../test/support/postgres-server.ts";
import { Coordinators } from "./smoke/coordinators.ts";
import type { Member } from "./smoke/member.ts";
import { demand, demandBuild, limitMsOr, runSmoke } from "./smoke/stage.ts";
import type { Tell } from "./smoke/stage.ts";
import { tallyResults } from "./smoke/tally.ts";

const COORDINATORS = 3;
const WORKERS = 3;
const SLOTS = 4;
const ITEMS = 360;
const SLEEP_MS = 100;
const LIMIT_MIN = 1;
const LOOK_MS = 10;

interface Outcome {
  readonly items: number;
  readonly killed: number;
  readonly takeoverMs: number;
}

async function perform(group: Coordinators, tell: Tell): Promise<Outcome> {
  for (let at = 0; at < COORDINATORS; at++) group.start(at);
  const first = await group.untilLed();
  const others = Array.from({ length: COORDINATORS }, (_, at) => at).filter((at) => at !== first.at);
  await Promise.all(others.map((at) => group.untilFollowing(at)));
  tell(`coordinator ${first.at + 1} of ${COORDINATORS} leads, the others follow`);
  const settings = { ROLLOUT_WORKER_SLOTS: String(SLOTS), ROLLOUT_MOCK_SLEEP: `${SLEEP_MS}ms` };
  const workers = await Promise.all(
    Array.from({ length: WORKERS }, (_, number) => group.startWorker(number + 1, settings)),
  );
  const ids = await Promise.all(workers.map((worker) => worker.workerId()));
  await untilJoined(group.member(first.at), ids);
  tell(`${WORKERS} workers have joined`);

  const client = await group.client();
  try {
    await client.submit(
      Array.from({ length: ITEMS }, (_, item) => ({ item })),
      { seal: true },
    );
    tell(`${ITEMS} items are submitted`);
    await until(client, ({ done }) => done >= ITEMS / 3);
    const killedMs = systemClock.monotonicMs();
    await group.member(first.at).kill();
    tell(`coordinator ${first.at + 1} is killed in the middle of that`);
    const second = await group.untilLed(first.epoch);
    const { done } = await client.status();
    await until(client, (status) => status.done > done);
    const takeoverMs = Math.round(systemClock.monotonicMs() - killedMs);
    tell(`coordinator ${second.at + 1} leads, and records results again after ${takeoverMs} ms`);
    group.start(first.at);
    await group.untilFollowing(first.at);
    tell(`coordinator ${first.at + 1} is back, and follows`);
    await until(client, ({ state }) => state === "complete");
    tell("the run is complete");
    await checkResults(client);
    await checkMembers(workers, group.member(second.at));
    return { items: ITEMS, killed: 1, takeoverMs };
  } finally {
    client.close();
  }
}

async function untilJoined(coordinator: Member, ids: readonly string[]): Promise<void> {
  await Promise.all(
    ids.map((id) => coordinator.event("worker_registered", ({ worker_id }) => worker_id === id)),
  );
}

async function until(
  client: RolloutClient,
  wanted: (status: Awaited<ReturnType<RolloutClient["status"]>>) => boolean,
): Promise<void> {
  while (!wanted(await client.status())) await sleep(systemClock, LOOK_MS);
}

/** Results are complete when each item has one, and nothing else has any. */
async function checkResults(client: RolloutClient): Promise<void> {
  const { items, duplicated } = await tallyResults(client);
  demand(items === ITEMS, `${ITEMS - items} results are lost`);
  demand(duplicated === 0, `${duplicated} results are there twice`);
}

/** No worker was given up or started again because of it, and each leaves in good order. */
async function checkMembers(workers: readonly Member[], leader: Member): Promise<void> {
  demand(leader.seen("worker_failed").length === 0, "a worker counts as failed");
  demand(
    workers.every(({ isRunning }) => isRunning),
    "a worker has ended",
  );
  await Promise.all(workers.map((worker) => worker.stop()));
}

process.exitCode = await inNewDatabase(await sharedPostgresUrl(), (postgres) =>
  runSmoke(limitMsOr(LIMIT_MIN), async (stage) => {
    demandBuild();
    const places = await Promise.all(
      Array.from({ length: COORDINATORS }, async () => {
        const address = `127.0.0.1:${await findFreePort()}`;
        return { listens: address, reached: address, postgres };
      }),
    );
    const group = await Coordinators.prepare(places);
    stage.afterwards(() => group.end());
    stage.explainBy(() => group.lastWords);
    const { items, killed, takeoverMs } = await perform(group, stage.tell);
    return { items, coordinators: COORDINATORS, workers: WORKERS, killed, takeover_ms: takeoverMs };
  }),
);
