// A user's machine for whoever wants to look at it: loaded from the file that exports it, or from the manifest of a plugin that
// runs it, or of an actor's type. The file's code runs in this process; what it prints goes to standard error, since standard output is the result.
import { access } from "node:fs/promises";
import terminal from "node:console";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { AnyStateMachine } from "xstate";
import { isDoneWithin, systemClock } from "../base/clock.ts";
import { describeError, failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import { systemReason } from "../base/system-reason.ts";
import { demandTrusted } from "../base/trusted-place.ts";
import type { NamedMachine } from "../charts/named-machine.ts";
import { isMachine, isRecentMachine, readMachine, UnreadableMachine } from "../charts/read-machine.ts";
import { loadManifest } from "../config/manifest.ts";
import type { CreateActor } from "../runtime/transition.ts";
import { isActorType, machineOfType } from "../worker/backends/actor/define-actor.ts";
import type { ActorType } from "../worker/backends/actor/define-actor.ts";
import { importAsSeenFrom, lendOurPackages, versionSeenFrom } from "../worker/backends/code/lent-packages.ts";

/** A file that imports itself in a circle, or waits for what never comes, is given up. */
const LOAD_TIMEOUT_MS = 30_000;
const ADVICE_EXPORT = "export a machine of XState 5, and name it as FILE#EXPORT where there are several";

/** The export may be left out where there is one, or a default. `place` is FILE or FILE#EXPORT, and FILE a module or a plugin's manifest. Throws machine_unusable, and what manifests throw. */
export async function loadUserMachine(place: string): Promise<NamedMachine> {
  const { file, exported } = await placeOf(place);
  const machines = await machinesOf(file);
  if (exported !== undefined) {
    const found = machines.find(({ name }) => name === exported);
    if (found === undefined) throw unusable(file, `it has no machine ${exported}, only ${namesOf(machines)}`);
    return found.read();
  }
  const [first, another] = machines;
  const only = machines.find(({ name }) => name === "default") ?? (another === undefined ? first : undefined);
  if (only === undefined) throw unusable(file, `it exports several machines: ${namesOf(machines)}`);
  return only.read();
}

/** All that the file exports; the one that a manifest names. Throws as `loadUserMachine` does. */
export async function loadUserMachines(place: string): Promise<NamedMachine[]> {
  const { file, exported } = await placeOf(place);
  if (exported !== undefined) return [await loadUserMachine(place)];
  const machines = await machinesOf(file);
  return machines.map((machine) => machine.read());
}

interface Place {
  readonly file: string;
  readonly exported: string | undefined;
}

async function placeOf(place: string): Promise<Place> {
  const at = place.lastIndexOf("#");
  const [file, exported] = at === -1 ? [place, undefined] : [place.slice(0, at), place.slice(at + 1)];
  if (!file.endsWith(".toml")) return { file: resolve(file), exported };
  const manifest = await loadManifest(file);
  if (manifest.backend !== "machine" && manifest.backend !== "actor")
    throw unusable(
      file,
      `its backend is ${manifest.backend}`,
      "name the manifest of a plugin whose backend is machine or actor",
    );
  const [only, ...others] = manifest.backend === "actor" ? manifest.spec.types : [manifest.spec.export];
  return {
    file: resolve(manifest.directory, manifest.spec.module),
    exported: exported ?? (others.length === 0 ? only : undefined),
  };
}

interface ExportedMachine {
  readonly name: string;
  readonly read: () => NamedMachine;
}

/** All that a user's file exports; its code runs in this process. Throws machine_unusable, and not_trusted. */
export async function exportsOfFile(file: string): Promise<Readonly<Record<string, unknown>>> {
  await access(file).catch((error: unknown) => {
    throw unusable(
      file,
      systemReason(error),
      "give the path of a JavaScript or TypeScript file, or of a manifest",
    );
  });
  await demandTrusted(file);
  return exportsOf(file, pathToFileURL(file).href);
}

async function machinesOf(file: string): Promise<ExportedMachine[]> {
  const exports = await exportsOfFile(file);
  const url = pathToFileURL(file).href;
  const { createActor } = (await importAsSeenFrom("xstate", url)) as { readonly createActor: CreateActor };
  const names = Object.keys(exports);
  const machines = names.flatMap((name) => {
    const found = exports[name];
    const machine = isActorType(found) ? wholeMachine(found) : found;
    return isMachine(machine)
      ? [{ name, read: () => ({ ...read(file, url, name, machine), createActor }) }]
      : [];
  });
  if (machines.length > 0) return machines;
  const reason =
    names.length === 0 ? "it exports nothing" : `it exports no machine, only ${names.join(", ")}`;
  throw unusable(file, reason);
}

/** A machine of an older XState comes as it is: it is refused when it is read. */
function wholeMachine(type: ActorType): AnyStateMachine {
  return isRecentMachine(type.machine) ? machineOfType(type) : type.machine;
}

function read(file: string, url: string, name: string, machine: AnyStateMachine): NamedMachine {
  if (!isRecentMachine(machine))
    throw unusable(
      file,
      `${name} was made by XState ${versionSeenFrom("xstate", url)}`,
      "make it with XState 5",
    );
  try {
    return { name, machine, model: readMachine(machine), structure: null };
  } catch (error) {
    if (!(error instanceof UnreadableMachine)) throw error;
    throw unusable(file, `${name}: ${error.message}`, "correct it, or name another one as FILE#EXPORT");
  }
}

async function exportsOf(file: string, url: string): Promise<Readonly<Record<string, unknown>>> {
  lendOurPackages();
  printToStandardError();
  const loading = import(url) as Promise<Readonly<Record<string, unknown>>>;
  // A file that waits for ever would else end the process without a word, as nothing keeps it.
  const isLoaded = await isDoneWithin(systemClock, LOAD_TIMEOUT_MS, loading).catch((error: unknown) => {
    throw unusable(
      file,
      `it throws when it is loaded: ${describeError(error)}`,
      "correct it; `node FILE` shows where",
    );
  });
  if (!isLoaded) throw unusable(file, "it is not loaded after 30 s", "have it do nothing but export");
  return await loading;
}

/** Most code prints by this, as its file is loaded and later. */
function printToStandardError(): void {
  for (const method of ["log", "info", "debug"] as const)
    terminal[method] = (...said: unknown[]) => terminal.error(...said);
}

function namesOf(machines: readonly ExportedMachine[]): string {
  return machines.map(({ name }) => name).join(", ");
}

function unusable(file: string, reason: string, advice = ADVICE_EXPORT): RolloutError {
  return failure("machine_unusable", { file, reason, advice });
}
