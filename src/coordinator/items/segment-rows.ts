// The only way in which a row of the ledger's segments comes or goes: the row itself, the count of its segment, and what the
// scrub knows of it, together.
import { encodeRecord, recordChecksum } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import type { Turn } from "../turn/turn.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SegmentName } from "../ledger/tally.ts";

/** A new row; returns its checksum, which `dropRow` wants back. */
export function putRow<T>(
  { tally, scrub }: Pick<Ledger, "tally" | "scrub">,
  turn: Turn,
  segment: SegmentName,
  { key, type, value }: { readonly key: string; readonly type: RecordType<T>; readonly value: T },
): number {
  const bytes = encodeRecord(type, key, value);
  turn.put({ key, value: bytes });
  tally.added(segment, bytes);
  const checksum = recordChecksum(bytes);
  scrub.came(segment, key, checksum);
  turn.ledgerTouched = true;
  return checksum;
}

/** A row leaves its segment; `checksum` is its own. */
export function dropRow(
  { tally, scrub }: Pick<Ledger, "tally" | "scrub">,
  turn: Turn,
  segment: SegmentName,
  { key, checksum }: { readonly key: string; readonly checksum: number },
): void {
  turn.delete(key);
  tally.removed(segment, checksum);
  scrub.went(segment, key, checksum);
  turn.ledgerTouched = true;
}
