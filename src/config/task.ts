// The task of a run, as a number and in words. The number is part of every item's id: another task, other items.
//
// Keeps true: how something is executed (version, concurrency, times, where a server is started) is not what is executed.
import { createHash } from "node:crypto";
import { printable, redactCommand, redactSecrets } from "../base/safe-text.ts";
import { pathOfUrl } from "./http-rules.ts";
import type { Manifest } from "./manifest.ts";
import { fieldsOf } from "./manifest-fields.ts";
import { nameOf } from "./value.ts";

export interface Task {
  /** Name of the plugin that executes the items. */
  readonly plugin: string;
  /** SHA-256 over plugin, backend and every field of its spec that is identity. */
  readonly digest: Buffer;
  /** For people, and shown to everybody who may look at the run: one line without secrets. Says enough of the digest that two tasks never look the same. */
  readonly summary: string;
  /** The types of actors that its items are events for; undefined unless its backend is `actor`. */
  readonly actorTypes?: readonly string[];
}

const FORMAT = "rollout task 1";
const SUMMARY_MAX_CHARACTERS = 160;
const DIGEST_SHOWN = 8;

/** The same for two manifests that run the same, wherever they stand. */
export function taskOf(manifest: Manifest): Task {
  const digest = createHash("sha256").update(identityText(manifest)).digest();
  const what = printable(whatRuns(manifest));
  const shown = what.length > SUMMARY_MAX_CHARACTERS ? `${what.slice(0, SUMMARY_MAX_CHARACTERS)}…` : what;
  const words = [`${manifest.name} (${manifest.backend})`, ...(shown === "" ? [] : [shown])].join(": ");
  const summary = `${words.toWellFormed()} [${digest.toString("hex").slice(0, DIGEST_SHOWN)}]`;
  const actors = manifest.backend === "actor" ? { actorTypes: manifest.spec.types } : {};
  return { plugin: manifest.name, digest, summary, ...actors };
}

/** JSON whose objects have their keys in order: equal manifests have equal texts. */
function identityText({ name, backend, spec }: Manifest): string {
  const values: Readonly<Record<string, unknown>> = { ...spec };
  const identity = fieldsOf(backend)
    .filter(([, field]) => field.identity !== false)
    .map(([key, field]) => {
      const value = values[nameOf(key, field)] ?? null;
      return [key, field.identity === "path" && typeof value === "string" ? pathOfUrl(value) : value];
    });
  return JSON.stringify([FORMAT, name, backend, identity], (_, value: unknown) => inOrder(value));
}

function inOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)));
}

function whatRuns(manifest: Manifest): string {
  switch (manifest.backend) {
    case "mock":
      return "";
    case "command":
    case "process":
      return redactCommand(manifest.spec.command);
    case "http":
      return redactSecrets(manifest.spec.url);
    case "module":
    case "machine": {
      const { module, export: name } = manifest.spec;
      return name === "default" ? module : `${module} (${name})`;
    }
    case "actor":
      return manifest.spec.module;
  }
}
