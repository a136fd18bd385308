// The walks of docs/ARCHITECTURE.md: which files an item, a heartbeat and a drain pass. Each step has to be one that the code has.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const WALK = /<!-- walk: (?<name>[\w ]+), at most (?<filesMax>\d+) files -->\s+```text\n(?<lines>[^`]*)```/gu;
/** `a.ts -> b.ts`: one of them imports the other. `a.ts -[Port]-> b.ts`: both speak of a port of that name. */
const STEP = /^(?: -> | -\[(?<port>\w+)\]-> )(?<file>[\w./-]+)(?<rest>.*)$/u;
const FIRST = /^(?<file>[\w./-]+)(?<rest>.*)$/u;
const IMPORT = /(?:from|import\()\s*"(?<path>\.[^"]+)"/gu;

interface Walk {
  readonly name: string;
  readonly filesMax: number;
  /** Each file once, in the order in which they are come to. */
  readonly files: readonly string[];
  /** Empty for a walk that the code has. */
  readonly faults: readonly string[];
}

function walksOf(markdown: string): Walk[] {
  return [...markdown.matchAll(WALK)].map(({ groups = {} }) => {
    const files = new Set<string>();
    const lines = (groups["lines"] ?? "").split("\n").filter((line) => line !== "");
    const faults = lines.flatMap((line) => follow(line, files));
    return { name: groups["name"] ?? "", filesMax: Number(groups["filesMax"]), files: [...files], faults };
  });
}

/** Adds the files of a line to those that were come to; what is wrong with the line. A bare name is one of the folder before it. */
function follow(line: string, known: Set<string>): string[] {
  let { file = "", rest = "" } = FIRST.exec(line)?.groups ?? {};
  if (known.size > 0 && !known.has(file)) return [`${file} begins a line, and no line before has come to it`];
  const faults = existsSync(join(REPOSITORY, file)) ? [] : [`${file} is not there`];
  known.add(file);
  while (rest !== "" && faults.length === 0) {
    const { port, file: next = "", rest: after = "" } = STEP.exec(rest)?.groups ?? {};
    if (next === "") return [`"${rest}" is no step`];
    const to = next.includes("/") ? next : join(dirname(file), next);
    if (!existsSync(join(REPOSITORY, to))) faults.push(`${to} is not there`);
    else if (!areJoined(file, to, port)) faults.push(`${file} and ${to} are not joined`);
    known.add(to);
    [file, rest] = [to, after];
  }
  return faults;
}

function areJoined(one: string, other: string, port: string | undefined): boolean {
  if (port === undefined) return importsOf(one).includes(other) || importsOf(other).includes(one);
  return [one, other].every((file) => new RegExp(`\\b${port}\\b`, "u").test(textOf(file)));
}

function importsOf(file: string): string[] {
  return [...textOf(file).matchAll(IMPORT)].map(({ groups }) =>
    normalize(join(dirname(file), groups?.["path"] ?? "")),
  );
}

function textOf(file: string): string {
  return readFileSync(join(REPOSITORY, file), "utf8");
}

function planted(...lines: readonly string[]): string[] {
  const markdown = ["<!-- walk: planted, at most 3 files -->", "", "```text", ...lines, "```"].join("\n");
  return walksOf(markdown).flatMap(({ faults }) => faults);
}

describe("the walks of docs/ARCHITECTURE.md", () => {
  const walks = walksOf(readFileSync(join(REPOSITORY, "docs/ARCHITECTURE.md"), "utf8"));

  it("are those of an item, a heartbeat and a drain", () => {
    const bounds = Object.fromEntries(walks.map(({ name, filesMax }) => [name, filesMax]));
    expect(bounds).to.deep.equal({ item: 60, heartbeat: 18, drain: 8 });
  });

  for (const { name, filesMax, files, faults } of walks) {
    it(`${name}: ${files.length} files of ${filesMax} at most, each joined to the one before it`, () => {
      expect(faults).to.deep.equal([]);
      expect(files).to.have.length.within(2, filesMax);
    });
  }

  it("are read in a way that would notice a step that the code has not", () => {
    const driver = "src/runtime/driver.ts";
    expect(planted(`${driver} -> snapshot.ts`)).to.deep.equal([]);
    expect(planted(`${driver} -> decision-tree.ts`)).to.have.length(1);
    expect(planted(`${driver} -> missing.ts`)).to.have.length(1);
    expect(planted(`${driver} -[NoSuchPort]-> snapshot.ts`)).to.have.length(1);
    expect(planted(`${driver} snapshot.ts`)).to.have.length(1);
    expect(planted(driver, "src/base/clock.ts -> errors.ts")).to.have.length(1);
  });
});
