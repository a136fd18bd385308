// The run of a command that follows it, which may be there before any coordinator is. Keeps true: what waiting does not help is an error
// at once; the configuration is read again each time, because a local run's names another address when its coordinator listens.
import { access } from "node:fs/promises";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import type { ErrorCode } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { operatorFiles } from "../transport/tls/host-credentials.ts";
import type { RolloutClient } from "./rollout-client.ts";

const BACKOFF = { baseMs: 200, ceilingMs: 5_000 };

export interface AwaitedRunPorts {
  /** Errors of these end the waiting, except those that a coordinator mends when it comes. */
  readonly load: () => Promise<ClientConfig>;
  readonly open: (config: ClientConfig) => Promise<RolloutClient>;
  readonly clock: Clock;
  readonly random: Random;
  /** A sentence, when it becomes known for what it waits, and when that is over. */
  readonly tell: (sentence: string) => void;
  readonly signal: AbortSignal;
}

/** A client whose coordinator has answered; the caller closes it. Throws `interrupted` when the signal aborts. */
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
