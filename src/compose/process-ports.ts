// The parts of every process of ours: the real clock, real chance, its event stream and its log. Handed down from here, so
// that nothing below knows where they come from.
import { systemClock } from "../base/clock.ts";
import type { Clock } from "../base/clock.ts";
import { systemRandom } from "../base/random.ts";
import type { Random } from "../base/random.ts";
import type { ClientConfig } from "../config/resolve.ts";
import type { UrgentEventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import { StdoutJsonEmitter } from "../observe/stdout-emitter.ts";

export interface ProcessPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: UrgentEventEmitter;
  readonly log: Logger;
  /** A sentence for a person, on standard error. */
  readonly tell: (sentence: string) => void;
}

/** Settles when something has gone so wrong that the process has to end; the first reason counts. */
export class Downfall {
  readonly #fallen = Promise.withResolvers<never>();

  constructor() {
    // Nobody may be waiting when it happens.
    this.#fallen.promise.catch(() => {});
  }

  /** To be raced against what the process waits for. */
  get promise(): Promise<never> {
    return this.#fallen.promise;
  }

  readonly because = (error: unknown): void => {
    this.#fallen.reject(error);
  };
}

/** A reader that takes nothing for this long loses the last events. */
const CLOSE_DEADLINE_MS = 2_000;

/**
 * Runs `use` with the ports of a process that speaks on standard output, and lets every event leave, within bounds. The log is
 * the caller's to close.
 */
export async function withPorts<Result>(
  config: ClientConfig,
  log: Logger,
  tell: (sentence: string) => void,
  use: (ports: ProcessPorts) => Promise<Result>,
): Promise<Result> {
  const events = new StdoutJsonEmitter({
    stream: process.stdout,
    fd: process.stdout.fd,
    runId: config.runId,
    clock: systemClock,
    log,
    hide: config.events.hide,
    limitBytes: config.events.bufferBytes,
    isTerminal: process.stdout.isTTY,
  });
  try {
    return await use({ clock: systemClock, random: systemRandom, events, log, tell });
  } finally {
    await events.close(CLOSE_DEADLINE_MS);
  }
}
