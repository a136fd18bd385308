// Everything is formatted, prose included.
import { expect } from "chai";
import { houseForAll } from "./house.ts";

describe("canary: the format", () => {
  const house = houseForAll([".oxfmtrc.json", "package.json", "tsconfig.json"]);

  it("passes a clean house", async () => {
    expect(await house.check("format")).to.include({ code: 0 });
  });

  it("refuses code, prose and configuration that is not formatted", async () => {
    house.plant({
      "src/base/x.ts": "export  const x=1",
      "docs/x.md": "*  one\n*  two\n",
      "x.json": '{"a":1,\n\n\n"b":2}',
    });
    const { code, output } = await house.check("format");
    expect(code).to.equal(1);
    for (const file of ["src/base/x.ts", "docs/x.md", "x.json"])
      expect(output).to.match(new RegExp(`^${file} `, "m"));
  });
});
