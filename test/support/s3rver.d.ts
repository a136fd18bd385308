declare module "s3rver" {
  import type { AddressInfo } from "node:net";

  /** A server of the protocol of S3, for tests. It has one user: S3RVER, with the same as secret. */
  class S3rver {
    constructor(options: {
      readonly address: string;
      readonly port: number;
      readonly silent: boolean;
      readonly directory: string;
      readonly configureBuckets?: readonly { readonly name: string }[];
    });
    run(): Promise<AddressInfo>;
    close(): Promise<void>;
  }
  export = S3rver;
}
