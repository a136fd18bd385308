// Files, exports and dependencies that nothing uses are found.
import { expect } from "chai";
import { type Ended, houseForAll } from "./house.ts";

const USES = 'import { used } from "../../src/used.ts";\nit(String(used), () => {});';
const PACKAGE = {
  name: "house",
  version: "1.0.0",
  type: "module",
  scripts: { test: "mocha", exports: "knip" },
  devDependencies: { mocha: "1.0.0", knip: "1.0.0" },
};

describe("canary: unused code", () => {
  const house = houseForAll(["knip.json", "knip.product.json", "tsconfig.json"], {
    "package.json": JSON.stringify(PACKAGE),
    "src/index.ts": 'export { used } from "./used.ts";',
    "src/used.ts": "export const used = 1;",
    "test/support/mocha-guard.ts": "",
    "test/unit/used.test.ts": USES,
  });
  let clean: Ended;
  let planted: Ended;
  before(async () => {
    clean = await house.check("exports");
    house.plant({
      "src/used.ts":
        "export const used = 1;\nexport const idle = 2;\nexport interface Idle { readonly x: number }",
      "src/alone.ts": "export const alone = 1;",
      "package.json": JSON.stringify({ ...PACKAGE, dependencies: { winston: "1.0.0" } }),
      "src/index.ts": 'export { used } from "./used.ts";\nimport "chai";',
    });
    planted = await house.check("exports");
  });

  it("passes a clean house", () => {
    expect(clean).to.include({ code: 0 }, clean.output);
  });

  it("fails a house with leftovers", () => {
    expect(planted.code).to.equal(1);
  });

  const FINDINGS: readonly [title: string, heading: string, line: RegExp][] = [
    ["an export", "Unused exports", /^idle .*src\/used\.ts/m],
    ["an exported type", "Unused exported types", /^Idle .*src\/used\.ts/m],
    ["a file", "Unused files", /^src\/alone\.ts/m],
    ["a dependency", "Unused dependencies", /^winston /m],
    ["a dependency that package.json does not name", "Unlisted dependencies", /^chai /m],
  ];
  for (const [title, heading, line] of FINDINGS) {
    it(`finds ${title}`, () => {
      expect(planted.output).to.include(heading);
      expect(planted.output).to.match(line);
    });
  }

  it("finds an export that only tests use, unless it says that it is a seam for them", async () => {
    house.plant({
      "package.json": JSON.stringify(PACKAGE),
      "src/index.ts": 'export { used } from "./used.ts";',
      "src/used.ts":
        "export const used = 1;\nexport const tested = 2;\n/** @internal */\nexport const seam = 3;",
      "test/unit/used.test.ts": `import { seam, tested } from "../../src/used.ts";\nexport default [seam, tested];`,
    });
    house.remove("src/alone.ts");
    const everything = await house.check("exports");
    expect(everything.code).to.equal(0, everything.output);
    const { code, output } = await house.check("exports-product");
    expect(output)
      .to.match(/^tested .*src\/used\.ts/m)
      .and.to.not.match(/^seam /m);
    expect(code).to.equal(1);
    house.plant({
      "src/used.ts":
        "export const used = 1;\n/** @internal */\nexport const seam = 3;\n/** @internal */\nexport const tested = 2;",
    });
    expect(await house.check("exports-product")).to.include({ code: 0 });
  });
});
