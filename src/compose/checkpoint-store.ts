// The place of partition checkpoints that the configuration names: a directory or a bucket. The server and the region of a bucket are those
// of the variables that all programs for such stores read.
import { makeDirectory } from "../base/file-system.ts";
import type { Clock } from "../base/clock.ts";
import type { WorkerId } from "../base/ids.ts";
import { isUrl, parseBucketUrl } from "../config/bucket-url.ts";
import type { ClientConfig } from "../config/resolve.ts";
import type { CheckpointStore } from "../worker/partitions/checkpoint-store.ts";
import { DirectoryStore } from "../worker/partitions/directory-store.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_REGION = "us-east-1";

/** Undefined where the configuration names none. Modules for buckets are loaded for a bucket alone. */
export async function openCheckpointStore(
  { keys: { checkpointStore, checkpointCredentials } }: ClientConfig,
  environment: Environment,
  workerId: WorkerId,
  clock: Clock,
): Promise<CheckpointStore | undefined> {
  if (checkpointStore === undefined) return undefined;
  const bucket = isUrl(checkpointStore) ? parseBucketUrl(checkpointStore) : undefined;
  if (bucket === undefined) {
    // Once: where it goes later, as when nothing is mounted there any more, it is not made anew. A write that fails says why.
    await makeDirectory(checkpointStore).catch(() => undefined);
    return new DirectoryStore(checkpointStore, workerId);
  }
  const [{ S3Store }, { readCredentials }] = await Promise.all([
    import("../worker/partitions/s3-store.ts"),
    import("../worker/partitions/s3-credentials.ts"),
  ]);
  const region = firstOf(environment, ["AWS_REGION", "AWS_DEFAULT_REGION"]) ?? DEFAULT_REGION;
  const endpoint = firstOf(environment, ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
  return new S3Store({
    ...{ bucket, region, clock },
    endpoint: (endpoint ?? `https://s3.${region}.amazonaws.com`).replace(/\/+$/u, ""),
    credentials: () => readCredentials(checkpointCredentials, environment),
  });
}

function firstOf(environment: Environment, names: readonly string[]): string | undefined {
  return names.map((name) => environment[name]).find((value) => value !== undefined && value !== "");
}
