// Executes items by a function that a JavaScript or TypeScript file exports.
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../../config/manifest-fields.ts";
import { CodeBackend } from "../code/code-backend.ts";
import type { CodeBackendOptions } from "../code/code-backend.ts";

export interface ModuleBackendOptions extends Omit<CodeBackendOptions, "program" | "load"> {
  /** Absolute path of the file. */
  readonly module: string;
  /** The name of the function. */
  readonly export: string;
  /** Given to it with each item. */
  readonly parameters: JsonObject;
}

/** From source and from dist the file has another ending. */
const PROGRAM = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "module-program.ts" : "module-program.js", import.meta.url),
);

export function moduleBackend(options: ModuleBackendOptions): CodeBackend {
  const { module, export: name, parameters } = options;
  return new CodeBackend({
    ...options,
    program: PROGRAM,
    load: { module, export: name, options: { parameters } },
  });
}
