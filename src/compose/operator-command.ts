// The base of an operator's commands: the library's client of the run, closed at the end, whatever it is. A command that follows the run may be
// there before any coordinator is. Keeps true: an error that waiting does not help comes at once; the configuration is read again each time,
// because a local run's names another address when its coordinator listens.
import { access } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { sleep, systemClock } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import type { ErrorCode } from "../base/errors.ts";
import { backoffMs, systemRandom } from "../base/random.ts";
import type { Random } from "../base/random.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { unlessInterrupted } from "../cli/signals.ts";
import type { SeenEnough } from "../cli/signals.ts";
import type { ClientConfig, ResolvedConfig } from "../config/resolve.ts";
import type { Logger } from "../observe/log.ts";
import { operatorFiles } from "../transport/tls/host-credentials.ts";
import { findLiveHolder } from "../storage/level/holder-file.ts";
import { thisProcess } from "../storage/level/process-identity.ts";
import { refuseEndedRun } from "./local-run/ended-run.ts";
import { LOCK } from "./local-run/run-record.ts";
import { isLooker } from "./store-holders.ts";
import { RolloutClient } from "./rollout-client.ts";

const BACKOFF = { baseMs: 200, ceilingMs: 5_000 };

export abstract class OperatorCommand extends BaseCommand {
  /** The log of this command, however often it asks. */
  #log: Logger | undefined;
  readonly #readConfig = rereading(
    (flags: Readonly<Record<string, unknown>>) => this.loadConfig("operator", flags),
    systemClock,
  );

  /** `flags` are the parsed ones. Throws the rows of configuration and certificates, local_run_ended, and what `use` throws. */
  protected async withRun<Result>(
    flags: Readonly<Record<string, unknown>>,
    use: (client: RolloutClient, config: ClientConfig) => Promise<Result>,
  ): Promise<Result> {
    const config = await this.#readConfig(flags);
    await refuseEndedRun(config.source);
    const client = await openRun(config, (this.#log ??= this.openLateLog(config.log)));
    try {
      return await use(client, config);
    } finally {
      client.close();
    }
  }

  /**
   * The same for what goes on and on: a coordinator that is away is waited for, also one that has never led here. Undefined when nobody
   * reads any more.
   */
  protected async followRun<Result>(
    flags: Readonly<Record<string, unknown>>,
    enough: SeenEnough,
    use: (client: RolloutClient, config: ClientConfig) => Promise<Result>,
  ): Promise<Result | undefined> {
    let client: RolloutClient | undefined;
    try {
      const found = await openAwaitedRun({
        load: async () => {
          const loaded = await this.#readConfig(flags);
          await refuseEndedRun(loaded.source);
          return loaded;
        },
        open: (loaded) => openRun(loaded, (this.#log ??= this.openLateLog(loaded.log))),
        ...{ clock: systemClock, random: systemRandom, signal: enough.signal },
        tell: (sentence) => this.tell(sentence),
      });
      client = found.client;
      return await use(client, found.config);
    } catch (error) {
      if (!enough.isReaderGone) throw error;
      return undefined;
    } finally {
      client?.close();
    }
  }

  /**
   * The same for what takes a moment, and may be repeated: a signal ends it with the row `interrupted`. A coordinator that is about to lead
   * on this machine is waited for, not for long. `giveUp`: as in `unlessInterrupted`.
   */
  protected askRun<Result>(
    flags: Readonly<Record<string, unknown>>,
    use: (client: RolloutClient) => Promise<Result>,
    giveUp?: () => void,
  ): Promise<Result> {
    const asked = askAwaited(() => this.withRun(flags, use), {
      isComing: async () => {
        const config = await this.loadConfig("coordinator", flags).catch(() => undefined);
        return config !== undefined && (await isAboutToLead(config));
      },
      clock: systemClock,
    });
    // Left behind by an interruption, it ends when the client is closed, and nobody waits for it.
    asked.catch(() => undefined);
    return unlessInterrupted(asked, this.argv, giveUp);
  }
}

/** Longer than an editor takes to write a file. */
const HALF_WRITTEN_MS = 500;

/**
 * The same reading, for what is read again and again: where it was read well once, it is read a second time before its error counts. An
 * editor may just be writing the file in its place.
 * @internal
 */
export function rereading<From, Read>(
  read: (from: From) => Promise<Read>,
  clock: Clock,
): (from: From) => Promise<Read> {
  let wasRead = false;
  return async (from) => {
    const found = await read(from).catch(async (error: unknown) => {
      if (!wasRead) throw error;
      await sleep(clock, HALF_WRITTEN_MS);
      return read(from);
    });
    wasRead = true;
    return found;
  };
}

/** Errors of a moment before a coordinator leads for the first time: it makes the files, then it listens. */
const BEFORE_LEADING: readonly ErrorCode[] = ["coordinator_refused_connection", "tls_file_unreadable"];
/** A coordinator on this machine takes less to begin, unless there is much to replay. */
const COMING_PATIENCE_MS = 10_000;
const COMING_POLL_MS = 100;

interface ComingPorts {
  /** Whether a coordinator that does not listen yet is on its way. */
  readonly isComing: () => Promise<boolean>;
  readonly clock: Clock;
}

/**
 * Asks again for as long as a coordinator is on its way, with an end. Throws what `ask` throws.
 * @internal
 */
export async function askAwaited<Result>(ask: () => Promise<Result>, ports: ComingPorts): Promise<Result> {
  const { isComing, clock } = ports;
  const endMs = clock.monotonicMs() + COMING_PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isBefore = error instanceof RolloutError && BEFORE_LEADING.includes(error.code);
      if (!isBefore || clock.monotonicMs() >= endMs || !(await isComing())) throw error;
    }
    await sleep(clock, COMING_POLL_MS);
  }
}

/** Whether a process has just opened the database that leads with it, or, of a local run, the directory. */
async function isAboutToLead({ source, storage }: ResolvedConfig): Promise<boolean> {
  const self = await thisProcess();
  // A database elsewhere names no holder here: its coordinators are asked in turn, and each says what it does.
  const places = [storage.path ?? [], join(dirname(source), LOCK)].flat();
  const holders = await Promise.all(places.map((place) => findLiveHolder(place, self)));
  const sinceMs = systemClock.wallMs() - COMING_PATIENCE_MS;
  return holders.some(
    (holder) => holder !== undefined && Date.parse(holder.since) >= sinceMs && !isLooker(holder.command),
  );
}

/** A client to which a local run says that it has ended, also while something is awaited from it. */
function openRun(config: ClientConfig, log: Logger): Promise<RolloutClient> {
  return RolloutClient.open(config, log, () => refuseEndedRun(config.source));
}

interface AwaitedRunPorts {
  /** Errors of these end the waiting, except those that a coordinator mends when it comes. */
  readonly load: () => Promise<ClientConfig>;
  readonly open: (config: ClientConfig) => Promise<RolloutClient>;
  readonly clock: Clock;
  readonly random: Random;
  /** A sentence, when it becomes known for what it waits, and when that is over. */
  readonly tell: (sentence: string) => void;
  readonly signal: AbortSignal;
}

/**
 * A client whose coordinator has answered; the caller closes it. Throws `interrupted` when the signal aborts.
 * @internal
 */
export async function openAwaitedRun(
  ports: AwaitedRunPorts,
): Promise<{ readonly client: RolloutClient; readonly config: ClientConfig }> {
  const { clock, random, tell, signal } = ports;
  let told: ErrorCode | undefined;
  for (let tried = 1; ; tried++) {
    const config = await ports.load();
    const found = await openOnce(ports, config);
    if (!(found instanceof RolloutError)) {
      if (told !== undefined) tell("The coordinator answers.");
      return { client: found, config };
    }
    // A hint helps where the coordinator may never come to this machine.
    const advice = found.row.retry === "never" ? ` (${found.hint})` : "";
    if (found.code !== told) tell(`Waiting: ${found.message}${advice}.`);
    told = found.code;
    await sleep(clock, backoffMs(BACKOFF, tried, random), signal);
    if (signal.aborted) throw failure("interrupted", {});
  }
}

/** The client, or for what it is to be waited. */
async function openOnce(
  ports: AwaitedRunPorts,
  config: ClientConfig,
  isSecond = false,
): Promise<RolloutClient | RolloutError> {
  const { open, signal } = ports;
  let client: RolloutClient | undefined;
  try {
    client = await open(config);
    await client.status({ signal });
    return client;
  } catch (error) {
    client?.close();
    if (!(error instanceof RolloutError)) throw error;
    if (error.row.retry !== "never") return error;
    if (client !== undefined) throw error;
    if (await lacksFiles(config)) return error;
    // They may have come since.
    if (isSecond) throw error;
    return openOnce(ports, config, true);
  }
}

/** A coordinator makes them when it starts on this machine for the first time. Files of a user's own CA nobody makes. */
async function lacksFiles({ transport: { certificates, tlsDir } }: ClientConfig): Promise<boolean> {
  if (certificates !== undefined) return false;
  const { caFile, certFile, keyFile } = operatorFiles(tlsDir);
  const there = await Promise.all(
    [caFile, certFile, keyFile].map((file) =>
      access(file).then(
        () => true,
        () => false,
      ),
    ),
  );
  return there.includes(false);
}
