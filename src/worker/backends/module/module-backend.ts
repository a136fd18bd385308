// Executes items by a function that a JavaScript or TypeScript file exports.
import { ownFile } from "../../../base/own-file.ts";
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

const PROGRAM = ownFile("src/worker/backends/module/module-program");

export function moduleBackend(options: ModuleBackendOptions): CodeBackend {
  const { module, export: name, parameters } = options;
  return new CodeBackend({
    ...options,
    program: PROGRAM,
    load: { module, export: name, options: { parameters } },
  });
}
