import { openTestStore } from "../support/postgres-store.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { leaseContract } from "./lease.ts";
import { storeContract } from "./store.ts";

describe("postgres_lease", () => {
  describe("at the server's own isolation", () => {
    const database = usePostgresDatabase();
    const open = (): ReturnType<typeof openTestStore> => openTestStore(database.url);
    storeContract("Postgres", { open });
    leaseContract("Postgres", { open });
  });

  describe("under SERIALIZABLE", () => {
    const database = usePostgresDatabase();
    const open = (): ReturnType<typeof openTestStore> => openTestStore(database.url);
    before(async () => {
      const name = new URL(database.url).pathname.slice(1);
      await database.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`);
    });
    storeContract("Postgres", { open });
    leaseContract("Postgres", { open });
  });
});
