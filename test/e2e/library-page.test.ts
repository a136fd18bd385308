// The programs of the pages about the library: each is run as its reader would run it, and says what is said below it.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { COMPILER } from "../../scripts/compiler.ts";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import * as library from "../../src/index.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { blocksOfFile } from "./document-blocks.ts";
import type { Block } from "./document-blocks.ts";
import { environmentFor } from "../support/rollout-process.ts";

const PAGES = ["README.md", "docs/library.md"];
const COMPILER_OPTIONS = {
  ...{ module: "nodenext", target: "esnext", lib: ["esnext"], types: ["node"], noEmit: true },
  ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: true },
};

const execute = promisify(execFile);

/** A block of TypeScript that stands on its own, and what it prints when that is said. */
interface Program {
  readonly block: Block;
  readonly name: string;
  readonly prints: string | undefined;
}

function programsOf(page: string): Program[] {
  const blocks = blocksOfFile(page);
  return blocks.flatMap((block, at): Program[] => {
    if (block.language !== "ts" || block.notRun !== undefined || block.file !== undefined) return [];
    const next = blocks[at + 1];
    const isSaid = next?.language === "text" && next.notRun === undefined;
    return [{ block, name: `program-${at}.ts`, prints: isSaid ? `${next.text}\n` : undefined }];
  });
}

describe("the pages about the library", () => {
  let root: string;
  const folderOf = (page: string): string => join(root, page.replaceAll("/", "-"));

  /** A folder in which the package, XState and Node's types are installed, with one for each page. */
  before(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), "rollout-library-page-")));
    const modules = join(root, "node_modules");
    await mkdir(join(modules, "@types"), { recursive: true });
    await symlink(repositoryFile(""), join(modules, "rollout"));
    await symlink(repositoryFile("node_modules/@types/node"), join(modules, "@types/node"));
    await symlink(repositoryFile("node_modules/xstate"), join(modules, "xstate"));
    await writeFile(join(root, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(root, "tsconfig.json"), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
    for (const page of PAGES) {
      const folder = folderOf(page);
      await mkdir(folder);
      const files = blocksOfFile(page).filter(({ file }) => file !== undefined);
      for (const { file = "", text } of files) await writeFile(join(folder, file), text);
      for (const { name, block } of programsOf(page)) await writeFile(join(folder, name), block.text);
    }
  });
  const it = concurrentTests(2);
  after(() => rm(root, { recursive: true, force: true }));

  it("have programs that the compiler takes", async () => {
    const tsc = repositoryFile(COMPILER);
    await execute(process.execPath, [tsc, "-p", root]).catch((error: unknown) => {
      const { stdout } = error as { stdout: string };
      throw new Error(stdout, { cause: error });
    });
  });

  for (const page of PAGES)
    for (const { name, block, prints } of programsOf(page))
      it(`${block.at}: does what is said`, async () => {
        const cwd = folderOf(page);
        const env = { ...environmentFor(), TMPDIR: cwd };
        const { stdout, stderr } = await execute(process.execPath, [name], { cwd, env });
        expect(stderr).to.equal("");
        if (prints !== undefined) expect(stdout).to.equal(prints);
      });

  it("docs/library.md has every export", async () => {
    const code = blocksOfFile("docs/library.md").map(({ text }) => text);
    for (const name of Object.keys(library).filter((each) => each !== "LocalCluster"))
      expect(code.join("\n"), name).to.match(
        new RegExp(`import \\{[^}]*\\b${name}\\b[^}]*\\} from "rollout"`),
      );
  });
});
