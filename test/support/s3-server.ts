// A server of the protocol of S3, on loopback, that others have written: s3rver. It has the buckets that it is made with.
import S3rver from "s3rver";

/** Its one user, and the user's secret. */
export const S3_USER = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" } as const;
export const S3_BUCKET = "states";

export interface S3Server {
  readonly endpoint: string;
  close(): Promise<void>;
}

export async function startS3Server(directory: string): Promise<S3Server> {
  const options = { address: "127.0.0.1", port: 0, silent: true, directory };
  const server = new S3rver({ ...options, configureBuckets: [{ name: S3_BUCKET }] });
  const { port } = await server.run();
  return { endpoint: `http://127.0.0.1:${port}`, close: () => server.close() };
}
