// `npm run build`: dist and the list of commands that oclif would otherwise make at every start by loading them all (0.35 s
// instead of 0.09 s for `--help`). The program is bundled: most of what a start cost was the loading of 600 to 900 modules
// (docs/adr/0029). All of it is replaced together and as a whole, so that what somebody runs is never half of each; when
// something is wrong the exit code says so.
import { spawnSync } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { Plugin } from "@oclif/core";
import { build } from "esbuild";

const DIST = "dist";
const MANIFEST = "oclif.manifest.json";
/** The licences of the packages in the bundle, which their authors ask to be passed on. */
const LICENSES = "licenses.txt";
/** Files that are imported or started by their path: each stays a file of its own, at the path of its source. */
const ENTRIES = ["src/index.ts", "src/cli/main.ts", "src/commands/**/*.ts", "src/**/*-{program,thread}.ts"];
/** Loaded as they are installed: a library of the machine's, what loads commands by path, what users' machines may import. */
const INSTALLED = ["classic-level", "@oclif/core", "xstate"];
/** Packages of CommonJS ask for those of Node, and for what is installed, by `require`. */
const REQUIRE = `import { createRequire as requireFrom } from "node:module";
const require = requireFrom(import.meta.url);`;
const PACKAGE_FOLDER = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;

const fresh = `.cache/build-${process.pid}`;
const old = `${fresh}-old`;

/** Throws when something is wrong. */
async function bundle(): Promise<void> {
  const { metafile } = await build({
    entryPoints: globSync(ENTRIES),
    ...{ outbase: ".", outdir: fresh, chunkNames: "shared/[hash]", metafile: true },
    ...{ bundle: true, splitting: true, format: "esm", platform: "node", target: "node22" },
    ...{ external: INSTALLED, banner: { js: REQUIRE }, logLevel: "silent" },
  });
  writeFileSync(`${fresh}/${LICENSES}`, licensesOf(Object.keys(metafile.inputs)));
}

function licensesOf(files: readonly string[]): string {
  const folders = new Set(files.flatMap((file) => PACKAGE_FOLDER.exec(file) ?? []));
  const texts = [...folders].toSorted().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as {
      readonly [field in "name" | "version" | "license"]: string;
    };
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? "" : `\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
    return `${name} ${version}: ${license}\n${text}`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

async function commandManifest(): Promise<string> {
  const plugin = new Plugin({
    root: process.cwd(),
    type: "core",
    ignoreManifest: true,
    errorOnManifestCreate: true,
  });
  await plugin.load();
  return `${JSON.stringify(plugin.manifest, null, 2)}\n`;
}

mkdirSync(".cache", { recursive: true });
const { status } = spawnSync("tsc", ["-p", "tsconfig.build.json", "--outDir", fresh], { stdio: "inherit" });
try {
  await bundle();
} catch (error) {
  // The former dist stays: a build that fails takes nothing away.
  rmSync(fresh, { recursive: true, force: true });
  throw error;
}
rmSync(MANIFEST, { force: true });
if (existsSync(DIST)) renameSync(DIST, old);
if (existsSync(fresh)) renameSync(fresh, DIST);
rmSync(old, { recursive: true, force: true });
writeFileSync(MANIFEST, await commandManifest());
process.exitCode = status ?? 1;
