// The wire contract that released programs speak: an image of proto/ in proto/baseline.binpb. Every baseline is named in
// CHANGELOG.md by its digest, so that none changes unseen.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export const BASELINE = "proto/baseline.binpb";
export const CHANGELOG = "CHANGELOG.md";

/** The first 12 characters of the SHA-256 of the committed image. */
export function baselineDigest(): string {
  return createHash("sha256").update(readFileSync(BASELINE)).digest("hex").slice(0, 12);
}
