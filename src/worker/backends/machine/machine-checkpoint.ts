// A machine's snapshot as bytes, with the machine that it is of: XState checks neither.
import { createHash } from "node:crypto";
import type { AnyStateMachine, AnyStateNode, Snapshot } from "xstate";
import { isTimers } from "./machine-timers.ts";
import type { SavedTimer } from "./machine-timers.ts";

/** What has to be equal for a snapshot to mean the same. */
export interface MachineIdentity {
  readonly id: string;
  /** Empty when the machine says none. */
  readonly version: string;
  /** Over the names, kinds and nesting of its states. */
  readonly structure: string;
}

export type ReadCheckpoint =
  | { readonly kind: "none" }
  | { readonly kind: "found"; readonly snapshot: Snapshot<unknown>; readonly timers: readonly SavedTimer[] }
  /** It is of another machine, or nothing that this program wrote. */
  | { readonly kind: "refused"; readonly reason: string };

const FORMAT = "rollout machine 1";

export function machineIdentity(machine: AnyStateMachine): MachineIdentity {
  const structure = createHash("sha256")
    .update(JSON.stringify(shapeOf(machine.root)))
    .digest("hex");
  return { id: machine.id, version: machine.version ?? "", structure };
}

function shapeOf({ key, type, states }: AnyStateNode): unknown {
  return [key, type, Object.values<AnyStateNode>(states).map(shapeOf)];
}

/** Throws when the snapshot is nothing that JSON can hold. */
export function writeCheckpoint(
  machine: MachineIdentity,
  snapshot: unknown,
  timers: readonly SavedTimer[],
): Uint8Array {
  return Buffer.from(JSON.stringify({ format: FORMAT, machine, snapshot, timers }));
}

export function readCheckpoint(bytes: Uint8Array, machine: MachineIdentity): ReadCheckpoint {
  if (bytes.length === 0) return { kind: "none" };
  const saved = parse(bytes);
  if (saved?.format !== FORMAT || saved.snapshot === undefined || !isTimers(saved.timers))
    return { kind: "refused", reason: "the checkpoint is not one of a machine" };
  const { snapshot, timers } = saved;
  for (const name of ["id", "version", "structure"] as const) {
    const [was, is] = [String(saved.machine?.[name]), machine[name]];
    if (was === is) continue;
    const reason =
      name === "structure"
        ? "the states of the machine are others than those of the checkpoint"
        : `the checkpoint is of a machine with ${name} ${was || "(none)"}, and this one has ${is || "(none)"}`;
    return { kind: "refused", reason };
  }
  return { kind: "found", snapshot, timers };
}

interface Saved {
  readonly format?: unknown;
  readonly machine?: Partial<Record<keyof MachineIdentity, unknown>>;
  readonly snapshot?: Snapshot<unknown>;
  readonly timers?: unknown;
}

function parse(bytes: Uint8Array): Saved | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
