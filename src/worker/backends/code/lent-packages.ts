// Packages of ours that a user's file may import without having them, and the same package as that file sees it.
import { readFileSync } from "node:fs";
import { findPackageJSON, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { jsonFields } from "../../../base/exact-json.ts";
import { ownFile } from "../../../base/own-file.ts";

const LENT = /^xstate(?:\/|$)/;
/** A part of this package that is lent by itself, and its file. */
const OWN_PARTS: ReadonlyMap<string, string> = new Map([["rollout/actors", ownFile("src/actors")]]);
/** Followed by the file whose view it is, and what it imports. */
const AS_SEEN_FROM = "rollout-as-seen-from:";

/** A user's file may import what this program has anyway, without installing it. */
export function lendOurPackages(): void {
  registerHooks({
    resolve(asked, asking, next) {
      const [specifier, context] = asked.startsWith(AS_SEEN_FROM)
        ? foreignView(asked.slice(AS_SEEN_FROM.length), asking)
        : [asked, asking];
      try {
        return next(specifier, context);
      } catch (error) {
        const own = OWN_PARTS.get(specifier);
        if (own !== undefined) return next(pathToFileURL(own).href, context);
        if (!LENT.test(specifier)) throw error;
        return next(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}

function foreignView<Context extends object>(text: string, context: Context): [string, Context] {
  const [specifier = "", ...parent] = text.split(" ");
  return [specifier, { ...context, parentURL: parent.join(" ") }];
}

/** The module that the file gets when it imports that package. */
export async function importAsSeenFrom(specifier: string, fileUrl: string): Promise<unknown> {
  return await import(`${AS_SEEN_FROM}${specifier} ${fileUrl}`);
}

/** The version of the package that the file gets when it imports it; that of ours when it has none of its own. */
export function versionSeenFrom(specifier: string, fileUrl: string): string {
  for (const base of [fileUrl, import.meta.url]) {
    const version = versionFrom(specifier, base);
    if (version !== undefined) return version;
  }
  return "of an unknown version";
}

function versionFrom(specifier: string, base: string): string | undefined {
  try {
    const file = findPackageJSON(specifier, base);
    const { version } = jsonFields(file === undefined ? "" : readFileSync(file, "utf8"));
    return typeof version === "string" ? version : undefined;
  } catch {
    return undefined;
  }
}
