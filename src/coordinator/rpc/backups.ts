// The rows of the store as they are at one moment, for an operator who keeps a copy of them. They are read beside the reactor, page by page
// as fast as they are taken, so that the loop is not held up and no more than a page is in memory.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { OperatorService } from "../../gen/rollout/v1/run_pb.ts";
import { allRows } from "../../storage/all-rows.ts";
import type { Store } from "../../storage/store.ts";
import type { Leader } from "./leader.ts";
import { refuse } from "./leader.ts";

/** A single row may be larger; it comes last in its page. */
const PAGE = { limit: 1_000, bytesMax: 256 * 1_024 } as const;

export function backups(leader: Leader, store: Store): Pick<ServiceImpl<typeof OperatorService>, "backUp"> {
  const { envelope: coordinator } = leader;
  // A frozen store costs: old rows are kept, and a connection.
  let isTaken = false;
  const leftAt = (): Error => failure("coordinator_silent", { address: leader.address });
  return {
    async *backUp(_request, { signal }) {
      if (store.freeze === undefined)
        return refuse("BackUp", "what is left of a damaged database is no backup");
      if (isTaken) throw failure("overloaded", { what: "the number of backups being made", limit: 1 });
      isTaken = true;
      let frozen: Store | undefined;
      try {
        frozen = await store.freeze();
        let rows = 0;
        for await (const page of allRows(frozen, PAGE)) {
          if (leader.stopping.aborted) throw leftAt();
          if (signal.aborted) return;
          rows += page.length;
          yield { coordinator, keys: page.map(({ key }) => key), values: page.map(({ value }) => value) };
        }
        yield { coordinator, rows };
      } catch (error) {
        // A store that is being closed cannot be read.
        throw leader.stopping.aborted ? leftAt() : error;
      } finally {
        await frozen?.close().catch(() => undefined);
        isTaken = false;
      }
    },
  };
}
