// `npm run build`: dist and the list of commands that oclif would otherwise make at every start by loading them all (0.35 s
// instead of 0.09 s for `--help`). The program is bundled: most of what a start cost was the loading of 600 to 900 modules
// (docs/adr/0029). All of it is replaced together and as a whole, so that what somebody runs is never half of each; when
// something is wrong the exit code says so.
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
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
import type { Plugin as Extension } from "esbuild";
import { COMPILER } from "./compiler.ts";

const DIST = "dist";
const MANIFEST = "oclif.manifest.json";
/** The licences of the packages in the bundle, which their authors ask to be passed on. */
const LICENSES = "licenses.txt";
/** Files that are imported or started by their path: each stays a file of its own, at the path of its source. */
const ENTRIES = [
  "src/index.ts",
  "src/actors.ts",
  "src/cli/main.ts",
  "src/commands/**/*.ts",
  "src/**/*-{program,thread}.ts",
];
/** Loaded as they are installed: a library of the machine's, what users' machines may import, what few need. */
const INSTALLED = ["classic-level", "xstate", "elkjs"];
/** Asked for by `pg` and by oclif where somebody has installed them, and never by us. */
const OPTIONAL = ["pg-native", "pg-cloudflare", "typescript", "pnpapi", "tsx", "ts-node"];
/** Packages of CommonJS ask for those of Node, and for what is installed, by `require`. */
const REQUIRE = `import { createRequire as requireFrom } from "node:module";
const require = requireFrom(import.meta.url);`;
/** Modules of Node of which an `import` makes all exports at once: those of HTTP have a whole browser's client among them. */
const REQUIRED: Extension = {
  name: "required",
  setup: (bundling) => {
    bundling.onResolve({ filter: /^(node:)?https?$/ }, ({ path, namespace }) => ({
      ...(namespace === "required" ? { external: true } : { namespace: "required" }),
      path: path.replace(/^(?!node:)/, "node:"),
    }));
    bundling.onLoad({ filter: /.*/, namespace: "required" }, ({ path }) => ({
      contents: `module.exports = require("${path}");`,
    }));
  },
};
const PAGE_SOURCE = "src/inspector/page";
const PAGE_ENTRIES = ["page.ts", "page.css"];
const BROWSERS = ["chrome120", "firefox121", "safari17"];
const PACKAGE_FOLDER = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;

const fresh = `.cache/build-${process.pid}`;
const old = `${fresh}-old`;

/** Throws when something is wrong. */
async function bundle(): Promise<void> {
  const { metafile } = await build({
    entryPoints: globSync(ENTRIES),
    ...{ outbase: ".", outdir: fresh, chunkNames: "shared/[hash]", metafile: true },
    ...{ bundle: true, splitting: true, format: "esm", platform: "node", target: "node22" },
    ...{
      external: [...INSTALLED, ...OPTIONAL],
      banner: { js: REQUIRE },
      plugins: [REQUIRED],
      logLevel: "silent",
    },
  });
  const inputs = [...Object.keys(metafile.inputs), ...(await bundlePage())];
  writeFileSync(`${fresh}/${LICENSES}`, licensesOf(inputs));
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

/** The page of `rollout inspect` for browsers of the last years, with a picture of each chart. */
async function bundlePage(): Promise<readonly string[]> {
  if (!existsSync(PAGE_SOURCE)) return [];
  // It loads all charts: only where there is a page to draw them for.
  const { drawCharts, PAGE_FOLDER } = await import("../src/inspector/page-files.ts");
  const page = `${fresh}/${PAGE_FOLDER}`;
  const { metafile } = await build({
    entryPoints: PAGE_ENTRIES.map((name) => `${PAGE_SOURCE}/${name}`),
    ...{ outdir: page, bundle: true, minify: true, metafile: true, format: "esm", platform: "browser" },
    ...{ target: BROWSERS, logLevel: "silent", legalComments: "none" },
  });
  copyFileSync(`${PAGE_SOURCE}/index.html`, `${page}/index.html`);
  mkdirSync(`${page}/charts`);
  for (const picture of await drawCharts())
    writeFileSync(`${page}/charts/${picture.name}.json`, JSON.stringify(picture));
  return Object.keys(metafile.inputs);
}

mkdirSync(".cache", { recursive: true });
const { status } = spawnSync(process.execPath, [COMPILER, "-p", "tsconfig.build.json", "--outDir", fresh], {
  stdio: "inherit",
});
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
