// The layer check: dependency-cruiser over the whole repository. It fails on a broken rule, and when it read less than
// everything: a cruiser that finds no modules finds no violations either.
import { execFileSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { allRooms, OUTSIDE, roomPattern } from "./layers.ts";

interface Cruise {
  readonly modules: readonly { readonly source: string; readonly dependencies: readonly unknown[] }[];
  readonly summary: {
    readonly violations: readonly {
      readonly from: string;
      readonly to: string;
      readonly rule: { readonly name: string };
      readonly cycle?: readonly { readonly name: string }[];
    }[];
  };
}

/** Fewer modules than this is not this product. */
const MODULES_MIN = 10;

function cruise(): Cruise {
  const roots = ["src", "machines", "bin", ...OUTSIDE].filter((root) => existsSync(root));
  const output = execFileSync(
    "depcruise",
    ["--config", ".dependency-cruiser.mjs", "--output-type", "json", ...roots],
    { encoding: "utf8", maxBuffer: 2 ** 28 },
  );
  return JSON.parse(output) as Cruise;
}

function problems({ modules, summary }: Cruise): string[] {
  const read = new Set(modules.map((module) => module.source));
  const product = globSync("{src,machines}/**/*.ts");
  const rooms = allRooms().map((room) => new RegExp(roomPattern(room)));
  return [
    ...summary.violations.map(
      ({ rule, from, to, cycle }) =>
        `${rule.name}: ${[from, ...(cycle?.map((step) => step.name) ?? [to])].join(" → ")}`,
    ),
    ...product.filter((file) => !read.has(file)).map((file) => `not read: ${file}`),
    ...product
      .filter((file) => !rooms.some((room) => room.test(file)))
      .map((file) => `no layer: ${file} is in no room that scripts/layers.ts names`),
    ...(product.length < MODULES_MIN
      ? [`${product.length} modules in src and machines: too few to be true`]
      : []),
  ];
}

const result = cruise();
const found = problems(result);
const edges = result.modules.reduce((sum, module) => sum + module.dependencies.length, 0);
for (const problem of found) console.log(problem);
console.log(`${result.modules.length} modules, ${edges} imports read, ${found.length} problems`);
process.exitCode = found.length === 0 ? 0 : 1;
