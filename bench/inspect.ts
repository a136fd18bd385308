// The cost of looking on: CPU of a coordinator with a fleet that beats, with nobody looking and with pages of `rollout inspect` open,
// by turns. Medians of the turns: what else goes on on the machine comes to both.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { get } from "node:http";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { assert } from "../src/base/assert.ts";
import { sleep, systemClock } from "../src/base/clock.ts";
import { RolloutClient } from "../src/compose/rollout-client.ts";
import type { Bench } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { MeasuredCoordinator } from "./support/measured-coordinator.ts";

const WORKERS = 500;
const BEAT_MS = 500;
const PAGES = 10;
const TURNS = 10;
const MEASURE_MS = 5_000;
/** Longer than the program goes on asking when the last page has left. */
const SETTLE_MS = 6_000;
/** An item is submitted as often: numbers change, so that pages are told of them. */
const SUBMIT_MS = 500;
/** For the first answers, in which everything is told. */
const BEGIN_MS = 1_500;

export const inspect: Bench = {
  name: "inspect",
  async run(note) {
    const coordinator = await MeasuredCoordinator.start();
    const fleet = await startFleet(coordinator);
    const program = startInspect(coordinator);
    const leaving = new AbortController();
    try {
      const client = await RolloutClient.connect({
        ...{ config: coordinator.configFile, settings: { "coordinator-addr": coordinator.address } },
      });
      const submitting = submitOn(client, leaving.signal);
      const url = await firstLine(program);
      const { url: address } = JSON.parse(url) as { readonly url: string };
      const turns: { readonly nobody: number; readonly somebody: number }[] = [];
      for (let turn = 0; turn < TURNS; turn++) {
        await sleep(systemClock, SETTLE_MS);
        const nobody = await measure(coordinator);
        const pages = await Promise.all(Array.from({ length: PAGES }, () => follow(address)));
        await sleep(systemClock, BEGIN_MS);
        const somebody = await measure(coordinator);
        for (const page of pages) page.destroy();
        turns.push({ nobody, somebody });
        note(`turn ${turn + 1}: ${round(nobody, 2)} and ${round(somebody, 2)} % of a core`);
      }
      leaving.abort();
      await submitting;
      client.close();
      const [nobody, somebody] = [turns.map((each) => each.nobody), turns.map((each) => each.somebody)];
      const more = turns.map((each) => each.somebody - each.nobody);
      const fleetName = `${WORKERS} workers`;
      return [
        { name: `${fleetName}, nobody looks`, value: round(median(nobody), 2), unit: "% of a core" },
        { name: `${fleetName}, ${PAGES} pages`, value: round(median(somebody), 2), unit: "% of a core" },
        { name: "more of a core, median of turns", value: round(median(more), 2), unit: "% of a core" },
        {
          name: "more of the coordinator's CPU, median of turns",
          value: round(median(turns.map((each) => (each.somebody / each.nobody - 1) * 100)), 1),
          unit: "%",
        },
      ];
    } finally {
      program.kill("SIGKILL");
      fleet.kill("SIGKILL");
      await coordinator.stop();
    }
  },
};

async function submitOn(client: RolloutClient, signal: AbortSignal): Promise<void> {
  for (let at = 0; !signal.aborted; at++) {
    // On a busy machine one may be too late for its deadline: the next one will do.
    await client.submit([{ at }]).catch(() => undefined);
    await sleep(systemClock, SUBMIT_MS, signal);
  }
}

async function startFleet({ address, runId, tlsDir }: MeasuredCoordinator): Promise<ChildProcess> {
  const words = [address, runId, tlsDir, String(WORKERS), String(BEAT_MS)];
  const program = join(import.meta.dirname, "support/beating-fleet.ts");
  const fleet = spawn(process.execPath, [program, ...words], { stdio: ["pipe", "pipe", "inherit"] });
  await firstLine(fleet);
  return fleet;
}

function startInspect({ configFile, address }: MeasuredCoordinator): ChildProcess {
  const bin = join(import.meta.dirname, "../bin/run.js");
  const words = ["inspect", "--json", "-c", configFile, "--coordinator-addr", address];
  return spawn(process.execPath, [bin, ...words], { stdio: ["ignore", "pipe", "inherit"] });
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  assert(stdout !== null, "its output is a pipe");
  const [line] = (await once(createInterface({ input: stdout }), "line")) as [string];
  return line;
}

async function follow(address: string): Promise<IncomingMessage> {
  const url = new URL(address);
  const authorization = `Bearer ${url.searchParams.get("token") ?? ""}`;
  const [page] = (await once(get(new URL("/feed", url), { headers: { authorization } }), "response")) as [
    IncomingMessage,
  ];
  page.on("error", () => undefined);
  return page.resume();
}

/** In hundredths of a core. */
async function measure(coordinator: MeasuredCoordinator): Promise<number> {
  await coordinator.lag();
  const sinceMs = systemClock.monotonicMs();
  await sleep(systemClock, MEASURE_MS);
  const { cpu_ms } = await coordinator.lag();
  return (cpu_ms / (systemClock.monotonicMs() - sinceMs)) * 100;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const [below = NaN, above = NaN] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return (below + above) / 2;
}
