// Which task items are submitted for: what their plugin's manifest says.
import { failure } from "../base/errors.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { loadManifest, mockManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";
import { taskOf } from "../config/task.ts";
import type { Task } from "../config/task.ts";

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
