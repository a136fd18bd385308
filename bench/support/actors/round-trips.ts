// One event after the other to idle actors: from the moment it is sent to the moment at which the state behind it is known, which the coordinator
// tells by itself. A program of a user's does the same.
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { RolloutClient } from "../../../src/compose/rollout-client.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { TOPICS } from "../../../src/observe/events.ts";
import { MeasuredRun } from "../measured-run.ts";
import type { counter } from "./counters.ts";
import { withPlugin } from "./plugins.ts";

const UNMEASURED = 20;
const SLOTS = 4;

/** Milliseconds of each, in order. */
export function idleRoundTrips(samples: number): Promise<number[]> {
  return withPlugin("counter", async ({ file }) => {
    const run = await MeasuredRun.start();
    try {
      run.startWorker(SLOTS, "--plugin", file);
      await run.until(({ workers }) => workers.ready === 1);
      const client = await openClient(run, file);
      try {
        await tripsOf(client, UNMEASURED);
        return (await tripsOf(client, samples)).toSorted((one, other) => one - other);
      } finally {
        client.close();
      }
    } finally {
      await run.stop();
    }
  });
}

async function tripsOf(client: RolloutClient, samples: number): Promise<number[]> {
  const actors = client.actors<typeof counter>("counter");
  const trips: number[] = [];
  for (let at = 0; at < samples; at++) {
    const ref = actors.ref(`idle-${at % 10}`);
    const count = (await ref.state().catch(() => undefined))?.context.count ?? 0;
    const sentMs = systemClock.monotonicMs();
    const known = ref.waitFor(({ context }) => context.count > count);
    await Promise.all([ref.send({ type: "add" }), known]);
    trips.push(systemClock.monotonicMs() - sentMs);
  }
  return trips;
}

async function openClient({ coordinator }: MeasuredRun, plugin: string): Promise<RolloutClient> {
  const config = await loadConfig("operator", {
    file: coordinator.configFile,
    environment: {},
    flags: { "coordinator-addr": coordinator.address, plugin },
    workingDirectory: process.cwd(),
    topics: TOPICS,
  });
  return RolloutClient.open(config, silentLogger);
}
