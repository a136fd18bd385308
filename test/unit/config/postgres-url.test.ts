import { expect } from "chai";
import { formatPostgres, parsePostgresUrl } from "../../../src/config/postgres-url.ts";

describe("the URL of a Postgres", () => {
  it("names a user, hosts in their order, and a database", () => {
    expect(parsePostgresUrl("postgres://rollout@db1,db2:5433,[::1]:5434/work")).to.deep.equal({
      address: {
        user: "rollout",
        hosts: [
          { host: "db1", port: 5_432 },
          { host: "db2", port: 5_433 },
          { host: "::1", port: 5_434 },
        ],
        database: "work",
        tls: { kind: "verified", caFile: undefined },
      },
      password: undefined,
    });
  });

  it("keeps a password apart, whatever is in it", () => {
    const parsed = parsePostgresUrl("postgresql://a%40b:p%3A%2F%40%20w@db/work");
    expect(parsed?.password).to.equal("p:/@ w");
    expect(parsed && formatPostgres(parsed.address)).to.equal("postgres://a%40b@db:5432/work");
    expect(JSON.stringify(parsed?.address)).to.not.include("p:/@");
  });

  it("checks certificates, but on this machine or where it says not to", () => {
    const tls = (url: string): unknown => parsePostgresUrl(url)?.address.tls;
    expect(tls("postgres://u@localhost/d")).to.deep.equal({ kind: "off" });
    expect(tls("postgres://u@127.0.0.1:5/d")).to.deep.equal({ kind: "off" });
    expect(tls("postgres://u@127.0.0.1,db/d")).to.deep.equal({ kind: "verified", caFile: undefined });
    expect(tls("postgres://u@localhost/d?sslmode=verify-full")).to.deep.equal({
      kind: "verified",
      caFile: undefined,
    });
    expect(tls("postgres://u@db/d?sslmode=disable")).to.deep.equal({ kind: "off" });
    expect(tls("postgres://u@db/d?sslrootcert=/etc/ca.pem")).to.deep.equal({
      kind: "verified",
      caFile: "/etc/ca.pem",
    });
  });

  it("is refused when it says anything else", () => {
    for (const text of [
      "",
      "mysql://u@db/d",
      "postgres://db/d",
      "postgres://u@db",
      "postgres://u@db/",
      "postgres://u@/d",
      "postgres://u@db:0/d",
      "postgres://u@db:x/d",
      "postgres://u@db,/d",
      "postgres://u@db/d/e",
      "postgres://u@db/d#x",
      "postgres://u%zz@db/d",
      "postgres://u@db/d?sslmode=require",
      "postgres://u@db/d?options=-c",
      "postgres://u@db/d?sslrootcert=ca.pem",
      "postgres://u@db/d?sslmode=disable&sslrootcert=/ca.pem",
    ])
      expect(parsePostgresUrl(text), text).to.equal(undefined);
  });
});
