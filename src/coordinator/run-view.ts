// The run in the coordinator's words, for its record and for people.
import type { RecordType } from "../storage/codec.ts";
import { RECORD_KIND } from "../storage/keys.ts";

export interface RunView {
  /** Name of the state in the compiled chart: `Open+Active`. */
  readonly state: string;
  readonly pending: number;
  readonly running: number;
  readonly done: number;
  readonly failed: number;
  readonly staleReports: number;
}

export interface RunRecord {
  readonly state: string;
  readonly pauseReason: string | null;
}

export const runRecord: RecordType<RunRecord> = {
  kind: RECORD_KIND.run,
  name: "run",
  version: 1,
  migrations: {},
  encode: ({ state, pauseReason }) => [state, pauseReason],
  decode: (fields) => ({ state: fields.text(0), pauseReason: fields.isNull(1) ? null : fields.text(1) }),
};
