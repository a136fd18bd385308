import { globSync, readFileSync } from "node:fs";
import { expect } from "chai";
import * as statements from "../../../../src/storage/postgres/statements.ts";

const FOLDER = "src/storage/postgres";
const SCHEMA = "rollout_01jz0000000000000000000000";
const OWN = `${FOLDER}/statements.ts`;
/** Each needs a session, a clock of the server, or an order that the server makes. */
const FORBIDDEN: readonly RegExp[] = [
  /advisory/i,
  /\b(?:un)?listen\b|\bnotify\b/i,
  /\bsequence\b|nextval|currval|setval|\b(?:big|small)?serial\b|\bgenerated\b|\bidentity\b/i,
  /\btrigger\b/i,
  /\bnow\s*\(|current_(?:date|time|timestamp)|clock_timestamp|statement_timestamp|transaction_timestamp/i,
  /\btemp(?:orary)?\b/i,
  /\bprepare\b|\bdeclare\b/i,
  /^\s*set\b/i,
];

/** Everything that is said to the server, as it is said. */
function allStatements(): string[] {
  const texts = (value: unknown): string[] =>
    typeof value === "string" ? [value] : Object.values(value as object).flatMap(texts);
  const constants = Object.values(statements).filter((value) => typeof value === "string");
  return [...constants, ...statements.migrations(SCHEMA).flat(), ...texts(statements.statementsFor(SCHEMA))];
}

describe("statements to Postgres", () => {
  it("use nothing that a session has to keep, and no clock of the server", () => {
    const found = allStatements();
    expect(found.length).to.be.above(25);
    for (const text of found) for (const pattern of FORBIDDEN) expect(text).to.not.match(pattern);
  });

  it("name the schema of the run with every table", () => {
    for (const text of allStatements())
      expect(text.replaceAll(`${SCHEMA}.`, "§")).to.not.match(/(?<!§)\b(?:kv|meta|writers)\b/);
  });

  it("stand in one file", () => {
    const sql = /["'`]\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|SET|BEGIN|LOCK)\s/;
    const others = globSync(`${FOLDER}/*.ts`).filter((file) => file !== OWN);
    expect(others.length).to.be.above(5);
    for (const file of others) expect(readFileSync(file, "utf8"), file).to.not.match(sql);
    expect(readFileSync(OWN, "utf8")).to.match(sql);
  });
});
