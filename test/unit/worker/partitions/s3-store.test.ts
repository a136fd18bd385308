// Trouble with a bucket, at a server that others have written, and at one that says nothing.
import { createServer } from "node:net";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { AddressInfo, Socket } from "node:net";
import assert from "node:assert/strict";
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { parseBucketUrl } from "../../../../src/config/bucket-url.ts";
import { readCredentials } from "../../../../src/worker/partitions/s3-credentials.ts";
import type { S3Credentials } from "../../../../src/worker/partitions/s3-credentials.ts";
import { S3Store } from "../../../../src/worker/partitions/s3-store.ts";
import { S3_BUCKET, S3_USER, startS3Server } from "../../../support/s3-server.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const SECRET = "a-secret-that-nobody-may-see";
const bytes = Buffer.from("bytes");

interface Place {
  readonly url: string;
  readonly credentials?: S3Credentials;
  readonly timeoutMs?: number;
}

function storeAt({ url, credentials = S3_USER, timeoutMs = 10_000 }: Place): S3Store {
  const bucket = parseBucketUrl(url) ?? assert.fail(`${url} is no bucket`);
  const how = { endpoint: "", region: "us-east-1", clock: systemClock, timeoutMs };
  return new S3Store({ bucket, ...how, credentials: async () => credentials });
}

async function reasons(store: S3Store): Promise<string[]> {
  const said = async (doing: Promise<unknown>): Promise<string> =>
    doing.then(
      () => "it was done",
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
  return [await said(store.write("run/place", bytes)), await said(store.read("run/place", 100))];
}

describe("a bucket in trouble", () => {
  const directory = useTemporaryDirectory();

  it("says by which answer it refuses a key that it does not know, and no word of the secret", async () => {
    const server = await startS3Server(directory.path);
    try {
      const credentials = { accessKeyId: "NOBODY", secretAccessKey: SECRET };
      const url = `${server.endpoint}/${S3_BUCKET}`;
      const said = await reasons(storeAt({ url, credentials }));
      const refusal = "it answers 403 (InvalidAccessKeyId)";
      expect(said).to.deep.equal([refusal, refusal]);
      expect(said.join()).to.not.include(SECRET);
    } finally {
      await server.close();
    }
  });

  it("tells a bucket that is missing from a checkpoint that is", async () => {
    const server = await startS3Server(directory.path);
    try {
      const missing = "it answers 404 (NoSuchBucket)";
      expect(await reasons(storeAt({ url: `${server.endpoint}/no-such-bucket` }))).to.deep.equal([
        missing,
        missing,
      ]);
      expect(await storeAt({ url: `${server.endpoint}/${S3_BUCKET}` }).read("run/place", 100)).to.equal(
        undefined,
      );
    } finally {
      await server.close();
    }
  });

  it("is given up when it takes a request and never answers, and when nobody listens", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const store = storeAt({ url: `http://127.0.0.1:${port}/states`, timeoutMs: 50 });
    const late = "it gives no answer for 50ms";
    expect(await reasons(store)).to.deep.equal([late, late]);
    for (const socket of sockets) socket.destroy();
    silent.close();
    await once(silent, "close");
    const [refused] = await reasons(storeAt({ url: `http://127.0.0.1:${port}/states` }));
    expect(refused).to.include("ECONNREFUSED");
  });

  it("has its credentials from the variables, or from a file that is read each time", async () => {
    const environment = {
      AWS_ACCESS_KEY_ID: "key",
      AWS_SECRET_ACCESS_KEY: SECRET,
      AWS_SESSION_TOKEN: "token",
    };
    const found = { accessKeyId: "key", secretAccessKey: SECRET, sessionToken: "token" };
    expect(await readCredentials(undefined, environment)).to.deep.equal(found);
    const file = directory.file("credentials");
    await writeFile(
      file,
      `[other]\naws_access_key_id = no\n[default]\naws_access_key_id = k\naws_secret_access_key=${SECRET}\n`,
    );
    expect(await readCredentials(file, environment)).to.deep.equal({
      accessKeyId: "k",
      secretAccessKey: SECRET,
    });
    const said = async (of: Promise<unknown>): Promise<string> =>
      String(await of.catch((error: unknown) => error));
    expect(await said(readCredentials(undefined, {}))).to.include("AWS_ACCESS_KEY_ID");
    expect(await said(readCredentials(directory.file("none"), environment))).to.match(
      /none cannot be read: it does not/,
    );
    await writeFile(file, `[default]\naws_secret_access_key=${SECRET}\n`);
    const lacking = await said(readCredentials(file, environment));
    expect(lacking).to.include("no key in its profile default").and.not.include(SECRET);
  });
});
