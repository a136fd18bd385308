// Imports go down only, types included, and the check has read every module before it says so.
import { expect } from "chai";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { allRooms, FLOORS, LAYERS } from "../../scripts/layers.ts";
import { type Ended, type Files, houseForAll, inHouse } from "./house.ts";

const COPIED = [
  "tsconfig.json",
  "package.json",
  ".dependency-cruiser.mjs",
  "scripts/layers.ts",
  "scripts/check-layers.ts",
];

/** A small house in order: each room holds a leaf, and some import what stands below them. */
const CLEAN: Files = {
  ...Object.fromEntries(
    allRooms()
      .filter((room) => !room.endsWith(".ts"))
      .map((room) => [
        `${room}/leaf.ts`,
        "export interface Leaf { readonly x: number }\nexport const leaf = 1;",
      ]),
  ),
  "src/index.ts":
    'export { leaf } from "./coordinator/leaf.ts";\nexport { level } from "./storage/level/store.ts";',
  "src/storage/level/store.ts":
    'export { leaf as level } from "../leaf.ts";\nexport { hidden } from "./hidden.ts";',
  "src/storage/level/hidden.ts": 'export { leaf as hidden } from "../../base/leaf.ts";',
  "src/runtime/chart.ts": 'import type { Leaf } from "../../machines/leaf.ts";\nexport type Chart = Leaf;',
  "test/unit/any.test.ts":
    'import { level } from "../../src/storage/level/store.ts";\nexport const x = level;',
};

const leafOf = (path: string): string => `export { leaf as other } from "${path}";`;

const VIOLATIONS: readonly {
  title: string;
  file: string;
  text: string;
  rule: string;
}[] = [
  {
    title: "an import upward",
    file: "src/base/up.ts",
    text: leafOf("../storage/leaf.ts"),
    rule: "layer-0a-src/base",
  },
  {
    title: "an import of a type upward",
    file: "src/storage/up.ts",
    text: 'import type { Leaf } from "../runtime/leaf.ts";\nexport type L = Leaf;',
    rule: "layer-2-src/storage",
  },
  {
    title: "a type upward, imported where it is used",
    file: "src/config/up.ts",
    text: 'export type L = import("../worker/leaf.ts").Leaf;',
    rule: "layer-1-src/config",
  },
  {
    title: "the ledger in the room of releases",
    file: "src/coordinator/release/ledger.ts",
    text: leafOf("../ledger/leaf.ts"),
    rule: "room-src/coordinator/release",
  },
  {
    title: "an import upward at run time",
    file: "src/observe/up.ts",
    text: 'export const later = (): Promise<unknown> => import("../cli/leaf.ts");',
    rule: "layer-1-src/observe",
  },
  {
    title: "an import of a room beside",
    file: "src/worker/beside.ts",
    text: leafOf("../coordinator/leaf.ts"),
    rule: "layer-4-src/worker",
  },
  {
    title: "an import of a type of a room beside",
    file: "src/storage/beside.ts",
    text: 'import type { Leaf } from "../transport/leaf.ts";\nexport type L = Leaf;',
    rule: "layer-2-src/storage",
  },
  {
    title: "an import of a room above within a room",
    file: "src/coordinator/ledger/up.ts",
    text: leafOf("../turn/leaf.ts"),
    rule: "room-src/coordinator/ledger",
  },
  {
    title: "an import of a type of a room above within a room",
    file: "src/coordinator/turn/up.ts",
    text: 'import type { Leaf } from "../items/leaf.ts";\nexport type L = Leaf;',
    rule: "room-src/coordinator/turn",
  },
  {
    title: "an import of a room beside within a room",
    file: "src/coordinator/session/beside.ts",
    text: leafOf("../rpc/leaf.ts"),
    rule: "room-src/coordinator/session",
  },
  {
    title: "an import of the files that stand above all rooms of a room",
    file: "src/coordinator/run/up.ts",
    text: leafOf("../leaf.ts"),
    rule: "room-src/coordinator/run",
  },
  {
    title: "an import of a room above within the worker",
    file: "src/worker/work/up.ts",
    text: leafOf("../link/leaf.ts"),
    rule: "room-src/worker/work",
  },
  {
    title: "charts that know more than base",
    file: "machines/wide.ts",
    text: leafOf("../src/config/leaf.ts"),
    rule: "layer-0b-machines",
  },
  {
    title: "a package in base",
    file: "src/base/heavy.ts",
    text: 'import winston from "winston";\nexport const w = winston;',
    rule: "packages-src/base",
  },
  {
    title: "a package but xstate in the charts",
    file: "machines/heavy.ts",
    text: 'import winston from "winston";\nexport const w = winston;',
    rule: "packages-machines",
  },
  {
    title: "a development package in the product",
    file: "src/worker/chai.ts",
    text: 'import { expect } from "chai";\nexport const e = expect;',
    rule: "product-imports-no-dev-dependency",
  },
  {
    title: "an implementation of a port, below the top",
    file: "src/coordinator/picks.ts",
    text: 'export { level } from "../storage/level/store.ts";',
    rule: "adapter-src/storage",
  },
  {
    title: "an implementation of a port, in its own room",
    file: "src/storage/picks.ts",
    text: 'export { level } from "./level/store.ts";',
    rule: "adapter-src/storage",
  },
  {
    title: "an implementation that knows another",
    file: "src/storage/memory/store.ts",
    text: 'export { level } from "../level/store.ts";',
    rule: "adapter-apart-src/storage",
  },
  {
    title: "the code of a cloud in the coordinator",
    file: "src/coordinator/cloud.ts",
    text: 'export { hint } from "../worker/preemption/gcp.ts";',
    rule: "coordinator-reaches-no-cloud",
  },
  {
    title: "a test in the product",
    file: "src/worker/tested.ts",
    text: 'export { x } from "../../test/unit/any.test.ts";',
    rule: "product-imports-no-outside",
  },
  {
    title: "an import of what is not there",
    file: "src/worker/lost.ts",
    text: 'export { x } from "./nowhere.ts";',
    rule: "unresolved",
  },
  {
    title: "a cycle",
    file: "src/client/one.ts",
    text: 'import { two } from "./two.ts";\nexport const one = (): unknown => two;',
    rule: "cycle",
  },
  {
    title: "a cycle of types",
    file: "src/cli/one.ts",
    text: 'import type { Two } from "./two.ts";\nexport interface One { readonly two: Two }',
    rule: "cycle",
  },
  {
    title: "a folder that no layer names",
    file: "src/elsewhere/leaf.ts",
    text: "export {};",
    rule: "no layer",
  },
  {
    title: "a folder that its room does not name",
    file: "src/coordinator/elsewhere/leaf.ts",
    text: "export {};",
    rule: "no layer",
  },
  {
    title: "a file beside the rooms",
    file: "src/main.ts",
    text: "export {};",
    rule: "no layer",
  },
];

const OTHER_HALVES: Files = {
  "src/client/two.ts": 'import { one } from "./one.ts";\nexport const two = (): unknown => one;',
  "src/cli/two.ts": 'import type { One } from "./one.ts";\nexport interface Two { readonly one: One }',
  "src/worker/preemption/gcp.ts": "export const hint = 1;",
};

describe("canary: the layers", () => {
  const house = houseForAll(COPIED, CLEAN);
  let clean: Ended;
  let planted: Ended;
  let blind: Ended;
  before(async () => {
    clean = await house.check("layers");
    house.plant({
      ...OTHER_HALVES,
      ...Object.fromEntries(VIOLATIONS.map(({ file, text }) => [file, text])),
    });
    planted = await house.check("layers");
  });

  it("passes a clean house, and says how many modules it read", () => {
    expect(clean.output).to.match(/^(\d+) modules, \d+ imports read, 0 problems\n$/);
    expect(Number(/^\d+/.exec(clean.output)?.[0])).to.be.at.least(Object.keys(CLEAN).length);
    expect(clean.code).to.equal(0);
  });

  it("fails a house with violations", () => {
    expect(planted.code).to.equal(1);
  });

  for (const { title, file, rule } of VIOLATIONS) {
    it(`refuses ${title}`, () => {
      const own = planted.output.split("\n").filter((line) => line.includes(`: ${file}`));
      expect(own.some((line) => line.startsWith(rule))).to.equal(true, planted.output);
    });
  }

  it("fails when modules were not read", async () => {
    const config = house.read(".dependency-cruiser.mjs");
    const blinded = config.replace('exclude: { path: "^dist/" }', 'exclude: { path: "." }');
    expect(blinded).to.not.equal(config);
    house.plant({ ".dependency-cruiser.mjs": blinded });
    blind = await house.check("layers");
    expect(blind.output).to.include("not read: src/base/leaf.ts");
    expect(blind.code).to.equal(1);
  });

  it("fails on a house that is too small to be this one", async () => {
    const ended = await inHouse(COPIED, { "src/base/leaf.ts": "export {};" }, (small) =>
      small.check("layers"),
    );
    expect(ended.output).to.include("too few");
    expect(ended.code).to.equal(1);
  });
});

describe("the layer table", () => {
  const source = join(import.meta.dirname, "../../src");
  const rooms = new Set(LAYERS.flatMap((layer) => layer.rooms));

  it("names every folder and file that stands in src", () => {
    for (const entry of readdirSync(source)) expect([...rooms]).to.include(`src/${entry}`);
  });

  for (const [room, floors] of Object.entries(FLOORS))
    it(`names every folder that stands in ${room}, once`, () => {
      const entries = readdirSync(join(source, "..", room), {
        withFileTypes: true,
      });
      const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
      const named = floors.flatMap((floor) => Object.keys(floor));
      expect(named).to.have.members([".", ...folders]);
    });

  it("names no room twice", () => {
    expect(rooms.size).to.equal(LAYERS.flatMap((layer) => layer.rooms).length);
  });
});
