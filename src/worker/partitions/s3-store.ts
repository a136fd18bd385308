// Checkpoints in a bucket of S3 or its like, each an object of its own. A request takes half a minute at most, and its credentials are read
// for it, so that they may be renewed.
//
// Keeps true: what is told of a request that failed is its status and the server's code for it: nothing of its headers, and no secret.
import { AwsClient } from "aws4fetch";
import type { Clock } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import type { BucketUrl } from "../../config/bucket-url.ts";
import { formatDuration } from "../../config/duration.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import type { S3Credentials } from "./s3-credentials.ts";

export interface S3Options {
  readonly bucket: BucketUrl;
  /** The server of a URL that names none. */
  readonly endpoint: string;
  readonly region: string;
  /** Rejects, saying how to give them, when there are none. */
  readonly credentials: () => Promise<S3Credentials>;
  readonly clock: Clock;
  /** 10 s unless said. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
/** The longest answer that says what is wrong. */
const ERROR_BYTES_MAX = 64 * 1024;
const NOT_FOUND = 404;

export class S3Store implements CheckpointStore {
  readonly name: string;
  readonly #options: S3Options;
  readonly #base: string;

  constructor(options: S3Options) {
    const { bucket, endpoint, prefix } = options.bucket;
    this.#options = options;
    this.#base = `${endpoint ?? options.endpoint}/${bucket}/${prefix}`;
    this.name = endpoint === undefined ? `s3://${bucket}/${prefix}` : this.#base;
  }

  async read(place: string, maxBytes: number): Promise<Uint8Array | undefined> {
    return this.#request("GET", place, undefined, async (response) => {
      if (response.ok) return bytesOf(response, maxBytes);
      const code = await codeOf(response);
      // A bucket that is missing is no checkpoint that is.
      if (response.status === NOT_FOUND && code !== "NoSuchBucket") return undefined;
      throw refused(response, code);
    });
  }

  async write(place: string, bytes: Uint8Array): Promise<void> {
    await this.#request("PUT", place, bytes, async (response) => {
      const code = await codeOf(response);
      if (!response.ok) throw refused(response, code);
    });
  }

  async #request<Result>(
    method: "GET" | "PUT",
    place: string,
    body: Uint8Array | undefined,
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    const { region, credentials, clock, timeoutMs = TIMEOUT_MS } = this.#options;
    const late = new AbortController();
    const timer = clock.after(timeoutMs, () => late.abort(), { background: true });
    try {
      const client = new AwsClient({ ...(await credentials()), service: "s3", region, retries: 0 });
      const sent = body === undefined ? {} : { body: new Uint8Array(body) };
      return await read(
        await client.fetch(`${this.#base}${place}`, { method, ...sent, signal: late.signal }),
      );
    } catch (error) {
      if (late.signal.aborted)
        throw new Error(`it gives no answer for ${formatDuration(timeoutMs)}`, { cause: error });
      // Node's own words are "fetch failed".
      const cause = error instanceof TypeError ? error.cause : undefined;
      throw cause === undefined ? error : new Error(describeError(cause), { cause: error });
    } finally {
      timer.cancel();
    }
  }
}

function refused({ status }: Response, code: string | undefined): Error {
  return new Error(`it answers ${status}${code === undefined ? "" : ` (${code})`}`);
}

/** The server's word for what is wrong. All of the answer is read, so that its connection can be used again. */
async function codeOf(response: Response): Promise<string | undefined> {
  const text = Buffer.from(await bytesOf(response, ERROR_BYTES_MAX)).toString();
  return /<Code>(?<code>\w{1,64})<\/Code>/u.exec(text)?.[1];
}

async function bytesOf(response: Response, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk as Uint8Array);
    bytes += (chunk as Uint8Array).length;
    if (bytes > maxBytes) throw new Error(`its answer has more than ${maxBytes} bytes`);
  }
  return Buffer.concat(chunks);
}
