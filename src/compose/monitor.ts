// The port at which monitoring asks a process of ours, where a setting names one: whether it lives, whether it can do what it is there for, and
// its metrics.
// It answers from the start of the process on, so that one that waits says for what.
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../observe/log.ts";
import { startLoopbackServer, words } from "../observe/loopback-server.ts";
import type { LoopbackServer, Page } from "../observe/loopback-server.ts";
import { Exposition, EXPOSITION_TYPE } from "../observe/metrics/exposition.ts";
import { ProcessMeter } from "../observe/metrics/process-meter.ts";

/** A process in its own words. Names are shown as they are. */
export interface Readiness {
  readonly ready: boolean;
  /** Why it is not. */
  readonly reason?: string;
  readonly [more: string]: unknown;
}

export interface MonitorOptions {
  /** Undefined: nobody is answered. */
  readonly listenAddr: string | undefined;
  readonly setting: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Whether it has a page with numbers of the cluster. */
  readonly hasNumbers: boolean;
}

export class Monitor {
  /** Asked for each call. */
  readiness: () => Promise<Readiness>;
  /** Numbers of the cluster; undefined while they are not known. */
  numbers: () => Promise<object | undefined> = () => Promise.resolve(undefined);
  /** Adds what is known beside the process itself. */
  metrics: (exposition: Exposition) => void = () => undefined;
  #server: LoopbackServer | undefined;
  #process: ProcessMeter | undefined;

  private constructor(reason: string) {
    this.readiness = () => Promise.resolve({ ready: false, reason });
  }

  /** `reason` is why the process is not ready, until it says something else. Fails with listen_failed. */
  static async open(options: MonitorOptions, reason: string): Promise<Monitor> {
    const monitor = new Monitor(reason);
    const { listenAddr, setting, log, clock, hasNumbers } = options;
    if (listenAddr === undefined) return monitor;
    const pages = {
      "/healthz": () => Promise.resolve(words(200, "ok")),
      "/readyz": () => monitor.#readyPage(),
      "/metrics": () => Promise.resolve(monitor.#metricsPage()),
      ...(hasNumbers && { "/health": () => monitor.#numbersPage() }),
    };
    const server = (monitor.#server = await startLoopbackServer({ listenAddr, setting, pages, log, clock }));
    monitor.#process = new ProcessMeter(clock);
    log.info("monitoring is answered", { address: server.address });
    return monitor;
  }

  async close(): Promise<void> {
    this.#process?.stop();
    await this.#server?.close();
  }

  async #readyPage(): Promise<Page> {
    const readiness = await this.readiness();
    return json(readiness.ready ? 200 : 503, readiness);
  }

  #metricsPage(): Page {
    const exposition = new Exposition();
    this.metrics(exposition);
    this.#process?.addTo(exposition);
    return { status: 200, contentType: EXPOSITION_TYPE, body: exposition.text };
  }

  async #numbersPage(): Promise<Page> {
    const numbers = await this.numbers();
    return numbers === undefined ? json(503, { reason: "not known yet" }) : json(200, numbers);
  }
}

function json(status: number, value: object): Page {
  return { status, contentType: "application/json", body: `${JSON.stringify(value)}\n` };
}
