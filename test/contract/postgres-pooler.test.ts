// A pooler in transaction mode, where each transaction may be on another session of the server: Debian's where it is installed.
import { openTestStore } from "../support/postgres-store.ts";
import { hasPgbouncer, startPgbouncer } from "./pgbouncer.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import { startTransactionPooler } from "./postgres/transaction-pooler.ts";
import type { TransactionPooler } from "./postgres/transaction-pooler.ts";
import { leaseContract } from "./lease.ts";
import { storeContract } from "./store.ts";

describe("Postgres: behind a pooler in transaction mode", () => {
  let server: PostgresServer;
  let pooler: TransactionPooler;
  before(async () => {
    server = await PostgresServer.start();
    pooler = await (hasPgbouncer() ? startPgbouncer(server) : startTransactionPooler(server));
  });
  after(async () => {
    await pooler.close();
    await server.close();
  });
  const open = (): ReturnType<typeof openTestStore> => openTestStore(pooler.url);
  storeContract("Postgres", { open });
  leaseContract("Postgres", { open });
});
