// The URL of a bucket in an object store, S3 or its like: `s3://BUCKET/PREFIX`, or with the server that has it,
// `https://HOST:PORT/BUCKET/PREFIX`. It holds no credentials.

export interface BucketUrl {
  /** The server; undefined for `s3://`, whose server the environment names, or Amazon's. */
  readonly endpoint: string | undefined;
  readonly bucket: string;
  /** Empty, or with a slash at its end. */
  readonly prefix: string;
}

const CHARACTERS_MAX = 1_024;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/u;

/** Whether it is meant as a URL, and not as a path. */
export function isUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//iu.test(text);
}

/** Undefined when the text is none, or has parts that such a URL cannot have. */
export function parseBucketUrl(text: string): BucketUrl | undefined {
  const url = text.length <= CHARACTERS_MAX ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    return undefined;
  const isNamed = url.protocol === "s3:";
  if (!isNamed && url.protocol !== "https:" && url.protocol !== "http:") return undefined;
  const [first = "", ...rest] = url.pathname.split("/").filter((part) => part !== "");
  const bucket = isNamed ? url.host : first;
  const parts = isNamed && first !== "" ? [first, ...rest] : rest;
  if (!BUCKET.test(bucket)) return undefined;
  const prefix = parts.length === 0 ? "" : `${parts.join("/")}/`;
  return { endpoint: isNamed ? undefined : url.origin, bucket, prefix };
}
