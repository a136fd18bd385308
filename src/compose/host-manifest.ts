// A manifest for workers on hosts, which get it beside what they keep: relative to where they start, and not to where it stands.
import { posix } from "node:path";
import { parse, stringify } from "smol-toml";
import { readTrustedText } from "../config/toml-file.ts";

/** From the directory of an allocation to where its worker starts. */
const START = "../../../..";

/** Throws manifest_unreadable, not_trusted, and errors of its TOML. */
export async function readHostManifest(file: string): Promise<string> {
  return hostManifest(await readTrustedText(file, "manifest_unreadable"));
}

/** @internal */
export function hostManifest(text: string): string {
  const manifest = parse(text);
  const { working_directory: directory } = manifest;
  const start = typeof directory === "string" ? posix.resolve("/", directory) : "/";
  const isAbsolute = typeof directory === "string" && posix.isAbsolute(directory);
  return stringify({ ...manifest, working_directory: isAbsolute ? directory : posix.join(START, start) });
}
