// A run of processes over mutual TLS whose workers have two versions of a module that does nothing: with a release that tries the second one on
// a tenth of the items, and without.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { assert } from "../../../src/base/assert.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { newUlid } from "../../../src/base/ids.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { createRelease, getRelease } from "../../../src/client/releases.ts";
import type { Line } from "../../../src/client/submit.ts";
import { loadManifest } from "../../../src/config/manifest.ts";
import type { Manifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";
import { ReleaseService } from "../../../src/gen/rollout/v1/release_pb.ts";
import { MeasuredRun } from "../measured-run.ts";
import { termsOf } from "./terms.ts";

const WORKERS = 2;
const SLOTS = 64;
/** Workers open their backends meanwhile. */
const UNMEASURED = 0.1;

export interface TrialRun {
  /** From the first submission to the last result, without the start of the workers. */
  readonly endToEndPerSecond: number;
  /** Processor time of the coordinator for an item, in microseconds. */
  readonly coordinatorUs: number;
  /** Attempts of the candidate that were judged; 0 without a release. */
  readonly judged: number;
}

export async function measureTrial(items: number, isTried: boolean): Promise<TrialRun> {
  const directory = mkdtempSync(join(tmpdir(), "rollout-bench-plugin-"));
  const run = await MeasuredRun.start();
  try {
    const [stable, candidate] = [await version(directory, "1"), await version(directory, "2")];
    const fromMs = systemClock.monotonicMs();
    await run.add(lines(items), stable);
    await run.seal();
    const submitMs = systemClock.monotonicMs() - fromMs;
    const calls = createClient(ReleaseService, run.transport);
    const digest = taskOf(candidate).digest;
    const asked = { id: newUlid(systemClock, systemRandom), spec: termsOf(), wait: true, dryRun: false };
    if (isTried) await createRelease(calls, { ...asked, candidate: { ...candidate, digest } });
    const plugins = [stable, candidate].flatMap(({ file }) => ["--plugin", file]);
    for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS, ...plugins);
    await run.until(({ done }) => done > 0);
    await run.coordinator.lag();
    const unmeasured = Math.ceil(UNMEASURED * items);
    const perSecond = await run.ratePerSecond(unmeasured, items);
    const { cpu_ms: cpuMs } = await run.coordinator.lag();
    const judged = isTried ? await judgedIn() : 0;
    const endToEndMs = submitMs + (items / perSecond) * 1_000;
    return {
      endToEndPerSecond: (items / endToEndMs) * 1_000,
      coordinatorUs: (cpuMs * 1_000) / items,
      judged,
    };

    async function judgedIn(): Promise<number> {
      const { stages, state } = await getRelease(calls, asked.id);
      // It ends in the turn behind the one that ends the run.
      assert(["rolling", "ended"].includes(state), `it tries until the run is over, and is ${state}`);
      return stages[0]?.judged ?? 0;
    }
  } finally {
    await run.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Each version is a file of its own, so that the two are different tasks. */
async function version(directory: string, number: string): Promise<Manifest> {
  const file = join(directory, `v${number}.toml`);
  writeFileSync(
    file,
    `name = "bench"\nversion = "${number}"\nbackend = "module"\n[module]\nmodule = "v${number}.mjs"\n`,
  );
  writeFileSync(join(directory, `v${number}.mjs`), "export default ({ n }) => ({ score: (n % 97) / 97 });\n");
  return loadManifest(file);
}

async function* lines(items: number): AsyncGenerator<Line> {
  for (let n = 0; n < items; n++) yield Buffer.from(JSON.stringify({ n, pad: "x".repeat(80) }));
}
