// The name of a run's tables on a Postgres in messages, for those who do not open them: the driver is loaded with the store only.
import type { RunId } from "../../base/ids.ts";
import { formatPostgres } from "../../config/postgres-url.ts";
import type { PostgresAddress } from "../../config/postgres-url.ts";
import { schemaOf } from "./statements.ts";

/** Everything but the password. */
export function locationOf({
  address,
  runId,
}: {
  readonly address: PostgresAddress;
  readonly runId: RunId;
}): string {
  return `${formatPostgres(address)} (schema ${schemaOf(runId)})`;
}
