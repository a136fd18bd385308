// One run of a user's machine: from its start or a snapshot to its final state, or to the moment at which it is asked to end.
//
// Keeps true: the last checkpoint that left is a state that the machine was in, with the timers that it had; an attempt that
// is asked to end leaves the state that it is in.
import type { AnyActorRef, AnyStateMachine, Snapshot } from "xstate";
import { systemClock } from "../../../base/clock.ts";
import type { Timer } from "../../../base/clock.ts";
import { describeError } from "../../../base/errors.ts";
import type { JsonObject } from "../../../base/exact-json.ts";
import type { CodeOutcome } from "../code/code-messages.ts";
import { importAsSeenFrom } from "../code/lent-packages.ts";
import { parseJsonText, tell } from "../code/serve-code.ts";
import type { CodeAttempt, Executing } from "../code/serve-code.ts";
import {
  machineIdentity,
  readCheckpoint,
  writeCheckpoint,
  pendingTimers,
  restoreTimers,
} from "./machine-checkpoint.ts";
import type { MachineIdentity } from "./machine-checkpoint.ts";

interface ActorOptions {
  readonly input?: unknown;
  readonly snapshot?: Snapshot<unknown>;
  readonly inspect?: (event: { readonly type: string; readonly actorRef: unknown }) => void;
}

type CreateActor = (machine: AnyStateMachine, options: ActorOptions) => AnyActorRef;

interface Loaded {
  readonly machine: AnyStateMachine;
  readonly identity: MachineIdentity;
  readonly createActor: CreateActor;
  readonly checkpointIntervalMs: number;
}

/** Throws when the export is no machine. */
export async function loadMachine(
  exported: unknown,
  options: JsonObject,
  fileUrl: string,
): Promise<Executing> {
  if (!isMachine(exported)) throw new TypeError("its export is no XState machine");
  // The machine's own copy: two of them do not know each other's actors.
  const { createActor } = (await importAsSeenFrom("xstate", fileUrl)) as { createActor: CreateActor };
  const checkpointIntervalMs = Number(options["checkpointIntervalMs"]);
  const loaded = {
    machine: exported,
    identity: machineIdentity(exported),
    createActor,
    checkpointIntervalMs,
  };
  return (attempt) => new MachineRun(loaded, attempt).outcome;
}

function isMachine(exported: unknown): exported is AnyStateMachine {
  return (
    typeof exported === "object" &&
    exported !== null &&
    "root" in exported &&
    "transition" in exported &&
    "getInitialSnapshot" in exported
  );
}

class MachineRun {
  readonly outcome: Promise<CodeOutcome>;
  readonly #loaded: Loaded;
  readonly #attempt: CodeAttempt;
  readonly #ended = Promise.withResolvers<CodeOutcome>();
  readonly #actor: AnyActorRef;
  #savedMs = systemClock.monotonicMs();
  #saving: Timer | undefined;
  #cannotBeSaved = false;

  constructor(loaded: Loaded, attempt: CodeAttempt) {
    this.#loaded = loaded;
    this.#attempt = attempt;
    this.outcome = this.#ended.promise.finally(() => this.#saving?.cancel());
    const { payload, checkpoint } = attempt.message;
    const read = readCheckpoint(checkpoint, loaded.identity);
    if (read.kind === "refused") tell(`starts anew: ${read.reason}\n`);
    const input = parseJsonText(payload);
    const found = read.kind === "found" ? read : undefined;
    const { machine, createActor } = loaded;
    this.#actor = createActor(machine, {
      input,
      ...(found === undefined ? {} : { snapshot: found.snapshot }),
      // A machine within it is part of its snapshot, and its changes are nothing that it would tell of itself.
      inspect: ({ type, actorRef }) => {
        if (type === "@xstate.snapshot" && actorRef !== this.#actor)
          systemClock.nextTurn(() => this.#changed());
      },
    });
    this.#actor.subscribe({
      next: () => this.#changed(),
      error: (error) => this.#ended.reject(asError(error)),
      complete: () => this.#completed(),
    });
    this.#actor.start();
    if (found !== undefined) restoreTimers(this.#actor, found.timers);
    if (attempt.signal.aborted) this.#stop();
    else attempt.signal.addEventListener("abort", () => this.#stop(), { once: true });
  }

  #changed(): void {
    const { checkpointIntervalMs } = this.#loaded;
    const leftMs = checkpointIntervalMs - (systemClock.monotonicMs() - this.#savedMs);
    if (leftMs <= 0) this.#save();
    else this.#saving ??= systemClock.after(leftMs, () => this.#save(), { background: true });
  }

  #save(): void {
    this.#saving?.cancel();
    this.#saving = undefined;
    this.#savedMs = systemClock.monotonicMs();
    const checkpoint = this.#checkpoint();
    if (checkpoint !== undefined) this.#attempt.saveCheckpoint(checkpoint);
  }

  /** Undefined when there is nothing to go on from. */
  #checkpoint(): Uint8Array | undefined {
    if (snapshotOf(this.#actor).status !== "active" || this.#cannotBeSaved) return undefined;
    try {
      const snapshot = this.#actor.getPersistedSnapshot();
      return writeCheckpoint(this.#loaded.identity, snapshot, pendingTimers(this.#actor));
    } catch (error) {
      this.#cannotBeSaved = true;
      tell(`its snapshot cannot be kept, so another attempt starts anew: ${describeError(error)}\n`);
      return undefined;
    }
  }

  #stop(): void {
    const checkpoint = this.#checkpoint();
    this.#ended.resolve(checkpoint === undefined ? { kind: "preempted" } : { kind: "preempted", checkpoint });
    this.#actor.stop();
  }

  #completed(): void {
    const { status, output } = snapshotOf(this.#actor);
    if (status !== "done") return this.#ended.reject(new Error(`the machine has stopped, and is not done`));
    try {
      this.#ended.resolve({ kind: "success", output: Buffer.from(JSON.stringify(output ?? null)) });
    } catch (error) {
      this.#ended.reject(asError(error));
    }
  }
}

function snapshotOf(actor: AnyActorRef): Snapshot<unknown> {
  return actor.getSnapshot() as Snapshot<unknown>;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(describeError(error));
}
