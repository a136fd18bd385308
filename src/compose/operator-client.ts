// The way of a command to the coordinator: as an operator, by the certificate that lies on the coordinator's host or by one
// of the user's own CA.
import type { Transport } from "@connectrpc/connect";
import { RolloutError } from "../base/errors.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { systemClock } from "../base/clock.ts";
import { systemRandom } from "../base/random.ts";
import type { Logger } from "../observe/log.ts";
import { openClient } from "../transport/client.ts";
import type { Client } from "../transport/client.ts";
import { loadCredentials } from "../transport/tls/credential-files.ts";
import { operatorFiles } from "../transport/tls/host-credentials.ts";

/** Connects at its first call. Throws tls_… rows; the caller closes it. */
export async function openOperatorClient(config: ClientConfig, log: Logger): Promise<Client> {
  const files = config.transport.certificates ?? operatorFiles(config.transport.tlsDir);
  const expected = { runId: config.runId, roles: ["operator"] as const };
  const { credentials } = await loadCredentials(files, expected, systemClock);
  const { coordinatorAddr: address } = config.worker;
  const { runId } = config;
  return openClient({ address, runId, credentials, clock: systemClock, random: systemRandom, log });
}

/**
 * Calls `whenAway` each time that no coordinator is reached, before the error is told. An error that it rejects with takes its place,
 * and ends a waiting that would have no end.
 */
export function askingWhenAway(transport: Transport, whenAway: () => Promise<void>): Transport {
  const judged = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      return await call();
    } catch (error) {
      if (error instanceof RolloutError && error.row.retry !== "never") await whenAway();
      throw error;
    }
  };
  return {
    unary: (...call) => judged(() => transport.unary(...call)),
    stream: (...call) => judged(() => transport.stream(...call)),
  };
}
