// One backend as the plugin `mock` version "1", which is what items of tests name.
import type { Backend } from "../../src/worker/backends/backend.ts";
import { Plugins } from "../../src/worker/backends/plugins.ts";

export function fixedPlugins(
  backend: Backend,
  parts: { name?: string; version?: string; stateVersion?: number } = {},
): Plugins {
  return new Plugins([{ name: "mock", version: "1", open: () => backend, ...parts }], (error) => {
    throw error;
  });
}
