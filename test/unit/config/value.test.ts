import { expect } from "chai";
import { describeAllowed, parseValue } from "../../../src/config/value.ts";

const CONTEXT = { directory: "/etc/rollout", topics: [] };

describe("a value of the configuration", () => {
  it("that is a list of paths is relative to where it stands, and may have commas in the file", () => {
    const rule = { kind: "list", of: "path" } as const;
    const raw = ["a,b.toml", "/c.toml", "../d.toml"];
    expect(parseValue(rule, raw, CONTEXT)).to.deep.equal(["/etc/rollout/a,b.toml", "/c.toml", "/etc/d.toml"]);
    expect(parseValue(rule, "a.toml, b.toml", CONTEXT)).to.deep.equal([
      "/etc/rollout/a.toml",
      "/etc/rollout/b.toml",
    ]);
    for (const refused of [["a.toml", 3], [""], 3, { a: 1 }])
      expect(parseValue(rule, refused, CONTEXT)).to.equal(undefined);
    expect(describeAllowed(rule, [])).to.equal("a list of paths");
  });

  it("that is true or false is written so, as a text in variables", () => {
    const rule = { kind: "boolean", default: false } as const;
    const raws = [true, false, "true", "false", "yes", "", 1, null];
    expect(raws.map((raw) => parseValue(rule, raw, CONTEXT))).to.deep.equal([
      ...[true, false, true, false],
      ...[undefined, undefined, undefined, undefined],
    ]);
    expect(describeAllowed(rule, [])).to.equal("true or false");
  });
});
