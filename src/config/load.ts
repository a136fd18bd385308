// The edge of the configuration: finds the file and reads it; src/config/resolve.ts makes sense of it.
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { RolloutError, errnoOf } from "../base/errors.ts";
import type { ConfigSources } from "./gather.ts";
import { namedBundle } from "./gather.ts";
import { resolveConfig } from "./resolve.ts";
import type { ClientConfig, ResolvedConfig } from "./resolve.ts";
import type { ConfigRole } from "./settings/setting.ts";
import { readTrustedText } from "./toml-file.ts";

/** The file in the working directory that is taken when none is named. */
export const CONFIG_FILE_NAME = "rollout.toml";

export interface ConfigRequest extends Omit<ConfigSources, "file" | "bundle"> {
  /** Reads what an enrolment bundle says in clear; absent for who does not join by one. */
  readonly readBundle?: (file: string) => Promise<ConfigSources["bundle"]>;
  /** As the user gave it, or the directory that it is in; undefined: `rollout.toml` in the working directory. */
  readonly file: string | undefined;
}

/**
 * Reads and resolves the configuration; without a file of its own name it is made of variables and flags alone. Throws
 * `config_unreadable`, `not_trusted` and what `resolveConfig` throws.
 */
export function loadConfig(role: "coordinator", request: ConfigRequest): Promise<ResolvedConfig>;
export function loadConfig(role: ConfigRole, request: ConfigRequest): Promise<ClientConfig>;
export async function loadConfig(role: ConfigRole, request: ConfigRequest): Promise<ClientConfig> {
  const named = resolve(request.workingDirectory, request.file ?? CONFIG_FILE_NAME);
  const path = (await isDirectory(named)) ? join(named, CONFIG_FILE_NAME) : named;
  let absence: unknown;
  const text = await readTrustedText(path, "config_unreadable").catch((error: unknown) => {
    if (request.file !== undefined || errnoOf(error) !== "ENOENT") throw error;
    // Nobody asked for that file: variables and flags may say everything.
    absence = error;
    return "";
  });
  try {
    const sources = { ...request, file: { path, text } };
    const enrolment = namedBundle(sources);
    const reading = enrolment === undefined ? undefined : request.readBundle?.(enrolment);
    // One that cannot be read is complained of where it is needed.
    const bundle = await reading?.catch((error: unknown) => void (absence = error));
    return resolveConfig(role, { ...sources, bundle: bundle ?? undefined });
  } catch (error) {
    const isMissingKey = error instanceof RolloutError && error.code === "config_missing_key";
    throw absence !== undefined && isMissingKey ? absence : error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
