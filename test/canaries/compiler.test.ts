// The compiler is strict, everywhere.
import { expect } from "chai";
import { type Ended, houseForAll } from "./house.ts";

interface Plant {
  readonly title: string;
  readonly file: string;
  readonly text: string;
  readonly code: string;
}

const plant = (title: string, code: string, text: string): Plant => ({
  title,
  file: `src/worker/${title.replaceAll(" ", "-")}.ts`,
  text,
  code,
});

const PLANTS: readonly Plant[] = [
  plant("null for a string", "TS2322", "export const name: string = null;"),
  plant("a parameter without a type", "TS7006", "export const size = (list) => list.length;"),
  plant("undefined for an optional", "TS2375", "export const one: { x?: number } = { x: undefined };"),
  plant("an unchecked index", "TS2322", "export const first = (list: number[]): number => list[0];"),
  plant(
    "a key by dot",
    "TS4111",
    "export const key = (map: Record<string, string>): string | undefined => map.some;",
  ),
  plant(
    "an override in silence",
    "TS4114",
    "class Base { run(): void {} }\nexport class Upper extends Base { run(): void {} }",
  ),
  plant(
    "a path without return",
    "TS7030",
    "export function half(n: number): number | undefined { if (n > 1) return 1; }",
  ),
  plant(
    "a fall through",
    "TS7029",
    "export function at(n: number): void { switch (n) { case 1: at(2); case 2: at(3); } }",
  ),
  plant("an unused variable", "TS6133", "const unused = 1;\nexport {};"),
  plant("an unused parameter", "TS6133", "export const f = (unused: number): number => 1;"),
  plant("an enum", "TS1294", "export enum Colour { red }"),
  plant("a parameter property", "TS1294", "export class Point { constructor(readonly x: number) {} }"),
  plant(
    "a type imported as a value",
    "TS1484",
    'import { Clock } from "../base/clock.ts";\nexport type C = Clock;',
  ),
  plant(
    "an import without its ending",
    "TS2835",
    'import { sleep } from "../base/clock";\nexport const s = sleep;',
  ),
  ...["machines", "test", "bench", "examples", "scripts"].map((folder) => ({
    title: `a mistake in ${folder}`,
    file: `${folder}/mistake.ts`,
    text: "export const name: string = 1;",
    code: "TS2322",
  })),
];

describe("canary: the build", () => {
  const house = houseForAll(
    ["tsconfig.json", "tsconfig.build.json", "package.json", "scripts/build.ts", "scripts/compiler.ts"],
    {
      "src/own-program.ts": 'import { y } from "../machines/y.ts";\nconsole.log(y);',
      "machines/y.ts": 'export const y: string = "as built";',
      "dist/src/base/stale.js": "",
      "src/commands/greet.ts":
        'import { Command } from "@oclif/core";\nexport class Greet extends Command { override async run(): Promise<void> {} }',
      "oclif.manifest.json": '{ "version": "0.0.0", "commands": { "gone": {} } }',
    },
  );

  it("makes dist anew, each program one file with what it imports", async () => {
    expect(await house.check("build")).to.deep.equal({ code: 0, output: "" });
    expect(house.read("dist/src/own-program.js")).to.include('"as built"');
    expect(() => house.read("dist/src/base/stale.js")).to.throw();
    const manifest = JSON.parse(house.read("oclif.manifest.json")) as { commands: object };
    expect(manifest.commands).to.have.all.keys("greet");
  });

  it("fails on an import that is not there, and leaves what was built before", async () => {
    const whole = house.read("src/own-program.ts");
    house.plant({ "src/own-program.ts": 'import "./nowhere.ts";' });
    const { code, output } = await house.check("build");
    expect(output).to.include('Could not resolve "./nowhere.ts"');
    expect(code).to.not.equal(0);
    expect(house.read("dist/src/own-program.js")).to.include('"as built"');
    house.plant({ "src/own-program.ts": whole });
  });

  it("fails on a mistake", async () => {
    house.plant({ "machines/y.ts": "export const y: string = 1;" });
    expect(await house.check("build")).to.include({ code: 2 });
  });

  it("fails on a command that does not load, and leaves no list of commands", async () => {
    house.plant({ "src/commands/greet.ts": 'throw new Error("as planted");\nexport {};' });
    const { code, output } = await house.check("build");
    expect(output).to.include("as planted");
    expect(code).to.not.equal(0);
    expect(() => house.read("oclif.manifest.json")).to.throw();
  });
});

describe("canary: the compiler", () => {
  const house = houseForAll(["tsconfig.json", "package.json", "src/base/clock.ts"], { ".cache/here": "" });
  let clean: Ended;
  let planted: Ended;
  before(async () => {
    clean = await house.check("types");
    house.plant(Object.fromEntries(PLANTS.map(({ file, text }) => [file, text])));
    planted = await house.check("types");
  });

  it("passes a clean house", () => {
    expect(clean).to.deep.equal({ code: 0, output: "" });
  });

  it("fails a house with mistakes", () => {
    expect(planted.code).to.not.equal(0);
  });

  for (const { title, file, code } of PLANTS) {
    it(`refuses ${title}`, () => {
      const own = planted.output.split("\n").filter((line) => line.startsWith(`${file}(`));
      expect(own.join("\n")).to.include(`error ${code}:`);
    });
  }
});

describe("canary: the compiler of the page", () => {
  const page = "src/inspector/page/page.ts";
  const house = houseForAll(["tsconfig.json", "package.json", "src/inspector/page/tsconfig.json"], {
    [page]: 'document.title = "clean";\nexport {};',
  });

  it("passes what a browser has, and refuses what it has not", async () => {
    expect(await house.check("types-page")).to.deep.equal({ code: 0, output: "" });
    house.plant({ [page]: "const title: string = 1;\nprocess.exit();\nexport {};" });
    const { code, output } = await house.check("types-page");
    expect(output)
      .to.match(/\(1,7\): error TS\d+/)
      .and.match(/\(2,1\): error TS\d+/);
    expect(code).to.not.equal(0);
  });
});
