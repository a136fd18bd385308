// A run's tables on a Postgres, and what they say of themselves. While a coordinator leads there they are its own, and nothing is looked into.
//
// Keeps true: a look makes no tables, and stores nothing.
import type { HintedLine } from "../../cli/shell-words.ts";
import { locationOf } from "../../storage/postgres/location.ts";
import { openUnled } from "../unled-store.ts";
import type { UnledLook } from "../unled-store.ts";
import type { Finding } from "./finding.ts";
import { good } from "./finding.ts";
import { examineRows } from "./storage.ts";

export interface PostgresLook extends UnledLook {
  readonly line: HintedLine;
}

/** Throws store_… rows. */
export async function examinePostgres(look: PostgresLook): Promise<readonly Finding[]> {
  const { storage, runId, line } = look;
  const path = locationOf({ ...storage, runId });
  const found = await openUnled(look);
  switch (found.kind) {
    case "absent":
      return [good("database", `${path}: its tables will be made at the first start`)];
    case "led":
      return [good("database", `${path}: led by ${found.holder}`)];
    case "free":
      try {
        return await examineRows(found.store, { path, runId, line, nobody: "nobody leads with it" });
      } finally {
        await found.store.close();
      }
  }
}
