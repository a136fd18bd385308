// rollout as its users get it: packed and installed by the steps of the Dockerfile, in a folder of its own without anything of the
// repository, and run.
import { expect } from "chai";
import { COMPILER } from "../../scripts/compiler.ts";
import { OWN_NAMES } from "../../src/charts/named-machine.ts";
import { execFile, execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { buildImage } from "./dockerfile.ts";
import type { BuiltImage } from "./dockerfile.ts";

const REPOSITORY = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as { version: string };

/** A program of somebody who is strict, and whose compiler looks at the declarations of dependencies too. */
const STRICT = {
  ...{ module: "nodenext", target: "esnext", lib: ["esnext", "dom"], types: ["node"], noEmit: true },
  ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, typeRoots: [] as string[] },
};
const TYPED = `import { RolloutClient, RolloutError, defineBackend, startCluster } from "rollout";
import type { ErrorCode, Result, RunStatus } from "rollout";

export const double = defineBackend<{ n: number }, number>(({ n }) => 2 * n);
export async function look(client: RolloutClient): Promise<[RunStatus, Result[]]> {
  const results: Result[] = [];
  for await (const result of client.results()) results.push(result);
  return [await client.status(), results];
}
export const codeOf = (error: unknown): ErrorCode | undefined =>
  error instanceof RolloutError ? error.code : undefined;
export const begin = () => startCluster({ command: ["cat"], workers: 1 });
`;
/** One mistake a line. */
const MISTAKEN = [
  'import { RolloutClient, startCluster } from "rollout";',
  "await startCluster({ worker: 3 });",
  "new RolloutClient();",
  "const client = await RolloutClient.connect(); client.explode();",
  "const done: string = (await client.status()).done;",
];

/** How this machine reaches the registry, as builds of images are told it too: dependencies that npm's cache lacks come from there. */
const WAY_OUT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) =>
    /^(NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(https?|no)_proxy|npm_config_registry)$/i.test(name),
  ),
);

/**
 * The packages that the build needs are those of this repository, which `make install` has installed by the same words: they are
 * linked, where that can be done, in place of being unpacked a second time. The package itself is installed as its users install it.
 */
const INSTALL = "npm ci --no-audit --no-fund";
const MODULES = join(REPOSITORY, "node_modules");
const LINK = `cp -al "${MODULES}" . 2>/dev/null || { rm -rf node_modules && cp -a "${MODULES}" .; }`;

/** Pages for those who read the source, which name its files; the package has the pages, and the repository the files. */
const ABOUT_THE_SOURCE = /^docs\/(adr\/|ARCHITECTURE|INVARIANTS|MACHINES|testing|BENCHMARKS)/;
const OF_THE_SOURCE = /^(src|machines|test|scripts|bench)\b/;

const execute = promisify(execFile);

/** The packages by their paths, with their versions and digests. */
function packagesIn(lockfile: string): Readonly<Record<string, { version?: string; integrity?: string }>> {
  const { packages } = JSON.parse(readFileSync(join(REPOSITORY, lockfile), "utf8")) as {
    packages: ReturnType<typeof packagesIn>;
  };
  return packages;
}

describe("the installed package", () => {
  let directory: string;
  let image: BuiltImage;
  let home: string;
  let files: string[];
  let tarball: string;

  const npm = async (cwd: string, ...args: string[]): Promise<string> => {
    const { stdout } = await execute("npm", [...args, "--no-audit", "--no-fund", "--prefer-offline"], {
      cwd,
    });
    return stdout;
  };
  const run = async (program: string, ...args: string[]): Promise<string> => {
    const path = join(home, "node_modules/.bin", program);
    const { stdout } = await execute(process.execPath, [path, ...args], { cwd: home });
    return stdout;
  };

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), "rollout-package-"));
    image = await buildImage(readFileSync(join(REPOSITORY, "Dockerfile"), "utf8"), {
      directory,
      copyContext: copyRepository,
      inPlaceOf: { [INSTALL]: LINK },
      // As the image has it: Node and npm, and no module of this repository.
      env: {
        PATH: [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
        HOME: directory,
        npm_config_cache: process.env["npm_config_cache"] ?? join(homedir(), ".npm"),
        npm_config_prefer_offline: "true",
        ...WAY_OUT,
      },
    });
    home = join(image.root, "opt/rollout");
    const [packed = ""] = globSync(join(directory, "build/src/out/*.tgz"));
    tarball = packed;
    const { stdout } = await execute("tar", ["--list", "--gzip", "--file", tarball]);
    files = stdout
      .trimEnd()
      .split("\n")
      .map((file) => file.replace("package/", ""));
  });
  after(() => rmSync(directory, { recursive: true, force: true }));

  it("was built with the packages that the lockfile names", () => {
    expect(readFileSync(join(REPOSITORY, "Dockerfile"), "utf8")).to.include(`\nRUN ${INSTALL}\n`);
    expect(readFileSync(join(REPOSITORY, "Makefile"), "utf8")).to.include(INSTALL);
    const locked = packagesIn("package-lock.json");
    const installed = Object.entries(packagesIn("node_modules/.package-lock.json"));
    expect(installed).to.have.length.above(100);
    for (const [path, { version, integrity }] of installed)
      expect({ ...locked[path] }, path).to.include({ version, integrity });
  });

  it("holds the program, its protocol and its documents, and no other file", () => {
    const tops = new Set(files.map((file) => file.split("/")[0]));
    expect([...tops]).to.have.members([
      ...["bin", "dist", "proto", "oclif.manifest.json", "package.json"],
      ...["README.md", "CHANGELOG.md", "LICENSE", "docs", "examples", "packaging", "Dockerfile"],
    ]);
    const sources = files.filter((file) => /\.test\.|(?<!\.d)\.ts$/.test(file));
    expect(sources.filter((file) => !file.startsWith("examples/"))).to.deep.equal([]);
    const page = files.filter((file) => file.startsWith("dist/page/"));
    expect(page).to.include.members(["index.html", "page.js", "page.css"].map((name) => `dist/page/${name}`));
    expect(page.filter((file) => file.startsWith("dist/page/charts/"))).to.have.length(OWN_NAMES.length);
  });

  it("holds every file that its README, its guide and the pages behind them link to", () => {
    const root = join(home, "node_modules/rollout");
    const [pages, missing] = [["README.md", "docs/guide.md"], [] as string[]];
    for (const page of pages)
      for (const link of linksOf(readFileSync(join(root, page), "utf8"))) {
        const target = join(dirname(page), link);
        if (OF_THE_SOURCE.test(target) && ABOUT_THE_SOURCE.test(page)) continue;
        if (!existsSync(join(root, target))) missing.push(`${page} → ${link}`);
        else if (target.endsWith(".md") && !pages.includes(target)) pages.push(target);
      }
    expect(missing).to.deep.equal([]);
    expect(pages).to.have.length.above(30);
  });

  it("holds the files that the guide copies from it", async () => {
    const guide = readFileSync(join(home, "node_modules/rollout/docs/guide.md"), "utf8");
    const copies = [...guide.matchAll(/^ *cp (?<from>.*npm root.*) \S+$/gm)].map(
      ({ groups }) => groups?.["from"] ?? "",
    );
    expect(copies, "the units of systemd").to.have.length(1);
    // A package that is installed for all users is where npm says; here it is in a folder of its own.
    const npmRoot = `npm() { echo "${join(home, "node_modules")}"; }`;
    for (const from of copies) {
      const { stdout } = await execute("sh", ["-euc", `${npmRoot}; ls ${from}`]);
      expect(stdout).to.include("rollout-coordinator.service").and.to.include("rollout-worker@.service");
    }
  });

  it("is the entry point of the image, and runs there as a user without privileges", async () => {
    const [program = ""] = image.entrypoint;
    const { stdout } = await execute(program, ["--version"], { cwd: image.workingDirectory, env: image.env });
    expect(stdout).to.include(`rollout ${version}`);
    expect(image.user).to.equal("node");
  });

  it("says how it is used", async () => {
    expect(await run("rollout", "--help")).to.include("rollout worker run");
  });

  it("says which version it is", async () => {
    expect(await run("rollout", "--version")).to.include(`rollout ${version}`);
  });

  it("runs by npx from a folder in which nothing is", async () => {
    // The unpacked package is not left behind in the user's cache; the packages that npx would fetch are there.
    const cache = (await npm(home, "config", "get", "cache")).trim();
    const [elsewhere, ownCache] = ["elsewhere", "cache"].map((name) => join(home, name));
    if (elsewhere === undefined || ownCache === undefined) throw new Error("two names");
    for (const folder of [elsewhere, ownCache]) mkdirSync(folder);
    symlinkSync(join(cache, "_cacache"), join(ownCache, "_cacache"));
    const words = ["--yes", "--prefer-offline", `--package=${tarball}`, "--", "rollout", "--version"];
    const env = { ...process.env, npm_config_cache: ownCache };
    const { stdout } = await execute("npx", words, { cwd: elsewhere, env });
    expect(stdout).to.include(`rollout ${version}`);
  });

  it("can be imported, and runs a cluster", async () => {
    const program = `
      import { RolloutClient, RolloutError, defineBackend, startCluster } from "rollout";
      import { defineActor } from "rollout/actors";
      const cluster = await startCluster({ command: ["wc", "-w"], workers: 1 });
      await cluster.client.submit(["two words"], { seal: true });
      for await (const { ok, output } of cluster.client.results({ follow: true }))
        console.log(ok, Buffer.from(output).toString().trim());
      await cluster.stop();
      console.log(cluster.client instanceof RolloutClient, typeof defineBackend, typeof RolloutError, typeof defineActor);`;
    const words = ["--input-type=module", "--eval", program];
    const env = { ...process.env, TMPDIR: home };
    const { stdout } = await execute(process.execPath, words, { cwd: home, env });
    expect(stdout).to.equal("true 2\ntrue function function function\n");
  });

  describe("to a compiler", () => {
    /** The compiler's output about a program in a folder beside the installed package. */
    const complaints = async (name: string, text: string): Promise<string[]> => {
      const folder = join(home, name);
      mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
      symlinkSync(join(REPOSITORY, "node_modules/@types/node"), join(folder, "node_modules/@types/node"));
      writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
      const typeRoots = [join(folder, "node_modules/@types")];
      const config = { compilerOptions: { ...STRICT, typeRoots }, include: ["*.ts"] };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
      writeFileSync(join(folder, "program.ts"), text);
      const tsc = join(REPOSITORY, COMPILER);
      return execute(process.execPath, [tsc, "-p", "."], { cwd: folder }).then(
        () => [],
        (error: unknown) => (error as { stdout: string }).stdout.trimEnd().split("\n"),
      );
    };

    it("has types without a complaint", async () => {
      expect(await complaints("typed", TYPED)).to.deep.equal([]);
    });

    it("has types that find mistakes, and exports no type that is internal", async () => {
      const found = await complaints("mistaken", MISTAKEN.join("\n"));
      const places = found
        .map((line) => /^program\.ts\((\d+),/.exec(line)?.[1])
        .filter((at) => at !== undefined);
      expect(places).to.deep.equal(["2", "3", "4", "5"]);
    });
  });

  it("brings the coordinator as a program of its own", async () => {
    expect(await run("rollout-coordinator", "--help")).to.include("--storage-path");
  });

  it("makes a configuration with `rollout init`", async () => {
    await run("rollout", "init", "--dir", "cluster");
    expect(readFileSync(join(home, "cluster/rollout.toml"), "utf8")).to.include("run_id");
  });

  it("brings every package that one of its modules imports", async () => {
    // The program of a thread, of a process of a worker or of a browser is no module to import; what it imports, others do.
    const isProgram = (file: string): boolean =>
      /-thread\.js$|\/worker\/.*-program\.js$|^dist\/page\//.test(file);
    const modules = files
      .filter((file) => /^dist\/.*\.js$/.test(file) && !isProgram(file))
      .map((file) => `rollout/${file}`);
    const program = `await Promise.all(${JSON.stringify(modules)}.map((path) => import("./node_modules/" + path)))`;
    await execute(process.execPath, ["--input-type=module", "--eval", program], { cwd: home });
    expect(modules).to.include("rollout/dist/src/cli/main.js");
  });
});

/** Where links of a page and sources of its pictures lead, but for other sites and places within the page. */
function linksOf(markdown: string): string[] {
  const links = [...markdown.matchAll(/\]\((?<to>[^)\s#]+)|(?:src|srcset)="(?<from>[^"]+)"/g)];
  return links
    .map(({ groups }) => groups?.["to"] ?? groups?.["from"] ?? "")
    .filter((link) => !/^\w+:/.test(link));
}

/**
 * The files as git would give them to somebody else, changes that are not committed included. No symbolic link: `npm ci` in the
 * copy would go through one of that name and empty the node_modules that it leads to.
 */
function copyRepository(to: string): void {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: REPOSITORY,
    encoding: "utf8",
  });
  const files = new Set(listed.split("\0").filter((name) => name !== ""));
  for (const file of files)
    if (lstatSync(join(REPOSITORY, file)).isFile()) cpSync(join(REPOSITORY, file), join(to, file));
}
