// Restate's virtual objects: its server, from npm, with its log synced as it is by default, a service in a process of its own, and calls over
// loopback from here. No dependency: where it cannot be had it is named with the reason.
import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { freePort } from "../../../test/support/listeners.ts";
import { inParallel } from "../peers/role.ts";
import { installedPackage, startServer } from "../peers/server.ts";
import type { Installed } from "../peers/server.ts";

const SERVER = "@restatedev/restate-server";
const PACKAGE = { name: SERVER, version: "1.7.12", beside: ["@restatedev/restate-sdk@1.17.2"] };
/** Partitions of its log, and calls that wait for an answer at once. */
const SETTINGS = [
  { partitions: 24, atOnce: 256 },
  { partitions: 4, atOnce: 512 },
] as const;
const WARM_CALLS = 1_000;
const LOOK_MS = 100;
const LOOKS_MAX = 300;

export interface RestateRates {
  readonly manyKeysPerSecond: number;
  readonly oneKeyPerSecond: number;
  /** Calls to idle keys, one after the other; NaN where none was asked for. */
  readonly idleMs: { readonly p50: number; readonly p99: number };
}

interface Sizes {
  readonly items: number;
  readonly keys: number;
  readonly oneKey: number;
  /** None unless said. */
  readonly idle?: number;
}

/** The better of its settings, and of calls that wait and messages that do not. */
export async function measureRestate(
  sizes: Sizes,
  note: (line: string) => void,
): Promise<RestateRates | { readonly skipped: string }> {
  const found = installedPackage(PACKAGE, note);
  if ("skipped" in found) return { skipped: found.skipped };
  const rates: RestateRates[] = [];
  for (const setting of SETTINGS) {
    const rate = await measureWith(found, setting, sizes);
    note(`Restate, ${JSON.stringify(setting)}: ${JSON.stringify(rate)}`);
    rates.push(rate);
  }
  return {
    manyKeysPerSecond: Math.max(...rates.map(({ manyKeysPerSecond }) => manyKeysPerSecond)),
    oneKeyPerSecond: Math.max(...rates.map(({ oneKeyPerSecond }) => oneKeyPerSecond)),
    idleMs: {
      p50: Math.min(...rates.map(({ idleMs }) => idleMs.p50)),
      p99: Math.min(...rates.map(({ idleMs }) => idleMs.p99)),
    },
  };
}

async function measureWith(
  { directory }: Installed,
  { partitions, atOnce }: (typeof SETTINGS)[number],
  { items, keys, oneKey, idle = 0 }: Sizes,
): Promise<RestateRates> {
  const [admin, node, service] = [await freePort(), await freePort(), await freePort()];
  const program = join(
    directory,
    `node_modules/${SERVER}-${process.platform}-${process.arch}/bin/restate-server`,
  );
  const server = await startServer(program, (port, place) => {
    const config = join(place, "restate.toml");
    writeFileSync(config, configOf({ place, port, admin, node, partitions }));
    return ["--config-file", config];
  });
  const child = fork(join(import.meta.dirname, "restate-program.ts"), [directory, String(service)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, NODE_ENV: "production", RESTATE_LOGGING: "ERROR" },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  try {
    await once(child, "message");
    await registered(agent, admin, service);
    const ask = (path: string): Promise<string> => post(agent, server.port, path);
    await inParallel(
      calls(WARM_CALLS, (n) => ask(`/counter/w${n % keys}/add`)),
      atOnce,
    );
    const called = await rate(items, () =>
      inParallel(
        calls(items, (n) => ask(`/counter/k${n % keys}/add`)),
        atOnce,
      ),
    );
    const sent = await rate(items, async () => {
      await inParallel(
        calls(items, (n) => ask(`/counter/s${n % keys}/add/send`)),
        atOnce,
      );
      await inParallel(
        calls(keys, (n) => ask(`/counter/s${n}/count`)),
        atOnce,
      );
    });
    const oneKeyPerSecond = await rate(oneKey, () =>
      inParallel(
        calls(oneKey, () => ask("/counter/one/add")),
        atOnce,
      ),
    );
    const trips = await idleTrips(idle, (n) => ask(`/counter/k${n % keys}/add`));
    const at = (share: number): number => trips[Math.floor(share * trips.length)] ?? NaN;
    const idleMs = { p50: at(0.5), p99: at(0.99) };
    return { manyKeysPerSecond: Math.max(called, sent), oneKeyPerSecond, idleMs };
  } finally {
    agent.destroy();
    child.kill("SIGKILL");
    await server.close();
  }
}

interface Place {
  readonly place: string;
  readonly port: number;
  readonly admin: number;
  readonly node: number;
  readonly partitions: number;
}

function configOf({ place, port, admin, node, partitions }: Place): string {
  return [
    `base-dir = "${place}/base"`,
    'advertised-host = "127.0.0.1"',
    `bind-address = "127.0.0.1:${node}"`,
    "disable-telemetry = true",
    'rocksdb-total-memory-size = "1 GiB"',
    `default-num-partitions = ${partitions}`,
    `[ingress]\nbind-address = "127.0.0.1:${port}"`,
    `[admin]\nbind-address = "127.0.0.1:${admin}"`,
    "",
  ].join("\n");
}

/** The server knows the service as soon as it is ready itself. */
async function registered(agent: Agent, admin: number, service: number): Promise<void> {
  for (let looks = 0; ; looks++)
    try {
      await post(agent, admin, "/deployments", JSON.stringify({ uri: `http://127.0.0.1:${service}` }));
      return;
    } catch (error) {
      if (looks >= LOOKS_MAX) throw error;
      await sleep(systemClock, LOOK_MS);
    }
}

function* calls(count: number, call: (n: number) => Promise<unknown>): Generator<() => Promise<unknown>> {
  for (let n = 0; n < count; n++) yield () => call(n);
}

/** Milliseconds of each, in order. */
async function idleTrips(count: number, call: (n: number) => Promise<unknown>): Promise<number[]> {
  const trips: number[] = [];
  for (let n = 0; n < count; n++) {
    const fromMs = systemClock.monotonicMs();
    await call(n);
    trips.push(systemClock.monotonicMs() - fromMs);
  }
  return trips.toSorted((one, other) => one - other);
}

async function rate(items: number, act: () => Promise<void>): Promise<number> {
  const fromMs = systemClock.monotonicMs();
  await act();
  return (items / (systemClock.monotonicMs() - fromMs)) * 1_000;
}

function post(agent: Agent, port: number, path: string, body = ""): Promise<string> {
  const headers = body === "" ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const call = request({ agent, host: "127.0.0.1", port, path, method: "POST", headers }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => {
        if ((response.statusCode ?? 500) < 300) resolve(text);
        else reject(new Error(`${response.statusCode} ${text}`));
      });
    });
    call.on("error", reject);
    call.end(body);
  });
}
