import { systemClock } from "../../src/base/clock.ts";
import { parseBucketUrl } from "../../src/config/bucket-url.ts";
import { DirectoryStore } from "../../src/worker/partitions/directory-store.ts";
import { S3Store } from "../../src/worker/partitions/s3-store.ts";
import { S3_BUCKET, S3_USER, startS3Server } from "../support/s3-server.ts";
import type { S3Server } from "../support/s3-server.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";
import { describeCheckpointStore } from "./checkpoint-store.ts";
import assert from "node:assert/strict";

describe("checkpoint stores", () => {
  const directory = useTemporaryDirectory();
  let writers = 0;
  describeCheckpointStore(
    "a directory",
    async () => new DirectoryStore(directory.path, `writer-${++writers}`),
  );

  let server: S3Server | undefined;
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });
  describeCheckpointStore("a bucket", async () => {
    server ??= await startS3Server(directory.path);
    const bucket = parseBucketUrl(`${server.endpoint}/${S3_BUCKET}/some/prefix`) ?? assert.fail();
    const region = "us-east-1";
    return new S3Store({
      bucket,
      endpoint: "",
      region,
      credentials: async () => S3_USER,
      clock: systemClock,
    });
  });
});
