import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { environmentFor } from "../support/rollout-process.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

const PROGRAM = join(import.meta.dirname, "../../bin/run.js");
/** Says how many modules were loaded, Node's own included. */
const COUNTER = `import { registerHooks } from "node:module";
import { writeFileSync } from "node:fs";
let count = 0;
registerHooks({ load: (url, context, next) => (count++, next(url, context)) });
process.on("exit", () => writeFileSync(process.env.COUNT, String(count)));`;

describe("the start of the program", () => {
  const directory = useTemporaryDirectory();

  function modulesOf(...words: string[]): number {
    const counter = `data:text/javascript,${encodeURIComponent(COUNTER)}`;
    spawnSync(process.execPath, ["--import", counter, PROGRAM, ...words], {
      cwd: directory.path,
      env: { ...environmentFor(), HOME: directory.path, COUNT: directory.file("count") },
    });
    return Number(readFileSync(directory.file("count"), "utf8"));
  }

  // Each costs a third of a millisecond. One new import can bring a hundred along; how the build cuts what is shared, some.
  it("loads few modules", () => {
    expect(modulesOf("--help")).to.be.within(1, 90);
    expect(modulesOf("status")).to.be.within(1, 130);
    expect(modulesOf("run", "nonesuch.jsonl", "--", "cat")).to.be.within(1, 190);
  });

  it("keeps what was compiled where nobody else can write, and nowhere else", () => {
    const home = directory.file("home");
    // The tests themselves keep it elsewhere.
    const environment = environmentFor();
    delete environment["NODE_COMPILE_CACHE"];
    const start = (): number | null =>
      spawnSync(process.execPath, [PROGRAM, "--version"], { env: { ...environment, HOME: home } }).status;
    mkdirSync(join(home, ".cache"), { recursive: true });
    const kept = (): number => readdirSync(join(home, ".cache/rollout")).length;
    chmodSync(join(home, ".cache"), 0o777);
    expect([start(), kept()]).to.deep.equal([0, 0]);
    chmodSync(join(home, ".cache"), 0o755);
    expect([start(), kept()]).to.deep.equal([0, 1]);
  });
});
