// Where the configuration has the metadata server, as what asks it takes it.
import { failure } from "../base/errors.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { parseMetadataUrl } from "../worker/preemption/metadata-http.ts";
import type { MetadataAddress } from "../worker/preemption/metadata-http.ts";

/** Throws config_invalid_value for a host that is not of this machine or its link. */
export function metadataAddress({ source, worker: { metadataAddr } }: ClientConfig): MetadataAddress {
  const address = parseMetadataUrl(`http://${metadataAddr}`);
  if (address !== undefined) return address;
  const allowed =
    "an address of this machine (127.…) or of its link (169.254.…), or metadata.google.internal";
  throw failure("config_invalid_value", {
    source,
    key: "worker.metadata_addr",
    value: metadataAddr,
    allowed,
  });
}
