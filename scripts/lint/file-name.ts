// Rule: a file is named after one noun of the domain, in kebab-case. Names that say nothing are banned.
import { basename, relative, sep } from "node:path";
import { defineRule } from "./syntax.ts";

const BANNED = new Set([
  "common",
  "constants",
  "helper",
  "helpers",
  "interfaces",
  "lib",
  "misc",
  "shared",
  "types",
  "util",
  "utils",
]);
const KEBAB = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

export const fileName = defineRule("files and folders are named after what they hold", (context, report) => ({
  Program(node) {
    const path = relative(context.cwd, context.filename);
    const names = path.split(sep).map((part) => part.replace(/^\./, "").replace(/\..*$/, ""));
    const banned = names.find((name) => BANNED.has(name) || /-(?:utils?|helpers?)$/.test(name));
    if (banned !== undefined) report(node, `"${banned}" says nothing: name it after the noun that it holds`);
    const own = names.at(-1) ?? "";
    if (!KEBAB.test(own)) report(node, `${basename(path)} is not kebab-case`);
  },
}));
