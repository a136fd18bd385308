// An operator's configuration put to use: the way to the coordinator, by the certificate that lies on the coordinator's host or by one of the
// user's own CA, and the task that items are submitted for.
import type { Transport } from "@connectrpc/connect";
import { failure, RolloutError } from "../base/errors.ts";
import { loadManifest, mockManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { taskOf } from "../config/task.ts";
import type { Task } from "../config/task.ts";
import { systemClock } from "../base/clock.ts";
import { systemRandom } from "../base/random.ts";
import type { Logger } from "../observe/log.ts";
import { openClient } from "../transport/client.ts";
import type { Client, ClientOptions } from "../transport/client.ts";
import { loadCredentials } from "../transport/tls/credential-files.ts";
import { operatorFiles } from "../transport/tls/host-credentials.ts";

/**
 * Connects at its first call. Throws tls_… rows; the caller closes it. `isAlone` is the client's: for what is said of one coordinator
 * and not of the run.
 */
export async function openOperatorClient(
  config: ClientConfig,
  log: Logger,
  { isAlone = false }: Pick<ClientOptions, "isAlone"> = {},
): Promise<Client> {
  const files = config.transport.certificates ?? operatorFiles(config.transport.tlsDir);
  const expected = { runId: config.runId, roles: ["operator"] as const };
  const { credentials } = await loadCredentials(files, expected, systemClock);
  const { coordinatorAddr: address } = config.worker;
  const { runId } = config;
  return openClient({ address, runId, credentials, isAlone, clock: systemClock, random: systemRandom, log });
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

/**
 * The task of the manifest that is named, else of the only one that workers of this configuration have, else of the plugin that every
 * worker has without any. Throws what `loadManifest` throws, and `config_missing_key` when there are several.
 */
export async function submittedTask(file: string | undefined, config: ClientConfig): Promise<Task> {
  return taskOf(file === undefined ? await manifestOfWorkers(config) : await loadManifest(file));
}

async function manifestOfWorkers({ source, worker: { plugins } }: ClientConfig): Promise<Manifest> {
  const [only, ...others] = plugins;
  if (only === undefined) return mockManifest();
  if (others.length === 0) return await loadManifest(only);
  const allowed = `one of the manifests that worker.plugins names, with --plugin: ${plugins.join(", ")}`;
  throw failure("config_missing_key", { source, key: "the plugin of the items", allowed });
}
