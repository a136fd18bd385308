// Results of rollout, followed by the library's own reading of them while a worker process executes no-ops.
import { assert } from "../../src/base/assert.ts";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { readResults } from "../../src/client/results.ts";
import { submitLines } from "../../src/client/submit.ts";
import { mockManifest } from "../../src/config/manifest.ts";
import { taskOf } from "../../src/config/task.ts";
import { Awaited } from "./followed.ts";
import type { Followed } from "./followed.ts";
import { MeasuredRun } from "./measured-run.ts";

const SLOTS = 16;
const PORTS = { clock: systemClock, random: systemRandom };

export async function withRollout<Result>(use: (followed: Followed) => Promise<Result>): Promise<Result> {
  const run = await MeasuredRun.start({ watchesLag: false });
  const leaving = new AbortController();
  const { signal } = leaving;
  const awaited = new Awaited();
  let items = 0;
  try {
    run.startWorker(SLOTS);
    const following = follow(run, awaited, signal).catch((error: unknown) => {
      assert(signal.aborted, `the results are followed to the end: ${String(error)}`);
    });
    const options = { task: taskOf(mockManifest()), priority: 0, ...PORTS };
    const result = await use({
      submit: () => {
        const name = `item-${++items}`;
        const known = awaited.wait(name);
        const submitted = submitLines(run.transport, one(`{"id":"${name}"}`), options);
        return Promise.all([known, submitted]).then(([atMs]) => atMs);
      },
    });
    leaving.abort();
    await following;
    return result;
  } finally {
    leaving.abort();
    await run.stop();
  }
}

async function follow({ transport }: MeasuredRun, awaited: Awaited, signal: AbortSignal): Promise<void> {
  const how = { ...PORTS, order: "completion", follow: true, signal } as const;
  for await (const { results } of readResults(transport, how))
    for (const { id = "" } of results) awaited.tell(id);
}

async function* one(line: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(line);
}
