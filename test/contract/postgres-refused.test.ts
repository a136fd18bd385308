// Servers that are refused: they say no, or would lose or tear what they have acknowledged.
import { expect } from "chai";
import { openPostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { openTestStore, testStoreOptions } from "../support/postgres-store.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import { failureOf } from "../support/rejection.ts";

describe("a Postgres that says no", () => {
  const database = usePostgresDatabase();

  it("is refused at once without a password and with a wrong one, and the error says what to set", async () => {
    const options = testStoreOptions(database.url);
    for (const [password, advice] of [
      [undefined, "name the file with the password by storage.password_file"],
      ["wrong", "correct the user in storage.url, and the password in storage.password_file"],
    ] as const) {
      const error = await failureOf(openPostgresStore({ ...options, password: async () => password }));
      expect(error).to.include({ code: "store_unusable", hint: advice });
    }
  });

  it("is tried again while another host of the URL may accept the connection", async () => {
    const options = testStoreOptions(database.url);
    const hosts = [...options.address.hosts, { host: "127.0.0.1", port: 1 }];
    const address = { ...options.address, hosts };
    const error = await failureOf(openPostgresStore({ ...options, address, password: async () => "wrong" }));
    expect(error).to.include({ code: "store_unreachable" });
    const store = await openPostgresStore({ ...options, address });
    await store.close();
  });
});

describe("a Postgres that may lose what it has acknowledged", () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start({ settings: { fsync: "off", full_page_writes: "off" } });
  });
  after(() => server.close());

  it("is refused, with what to set", async () => {
    const error = await failureOf(openTestStore(server.url));
    expect(error).to.include({ code: "store_unusable" });
    expect(error.params["reason"]).to.equal(
      `127.0.0.1:${server.port} runs with fsync = off and full_page_writes = off, and a crash of it loses or tears what was acknowledged`,
    );
    expect(error.hint).to.equal(
      "set fsync = on and full_page_writes = on in its postgresql.conf, and reload it",
    );
  });
});
