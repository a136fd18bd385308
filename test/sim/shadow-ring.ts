// The ring of partitions as the batches of coordinators tell it, kept beside the room of keys and without any of its code.
//
// Keeps true: after every batch each member is a worker that is heard of and stays, and each change of the members has an epoch of its
// own, one above the last.
import type { AssignmentRecord } from "../../src/coordinator/keys/assignment.ts";
import { assignmentRecord } from "../../src/coordinator/keys/assignment.ts";
import { workerRecord } from "../../src/coordinator/workers/worker-record.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { ASSIGNMENT_KEY, WORKERS_PREFIX } from "../../src/storage/keys.ts";
import type { Batch } from "../../src/storage/store.ts";
import { Violation } from "./world.ts";

const MEMBER_STATE = /^(Init|Ready)\+(Alive|Suspected)$/;

export class ShadowRing {
  #assignment: AssignmentRecord = { epoch: 0, virtualNodes: 0, members: [] };
  /** By worker id: why it is no member; empty while it may be one. */
  readonly #whyNot = new Map<string, string>();

  /** Throws a violation. `isWhole`: it is all that a store has, and not what a turn has written. */
  take({ puts }: Pick<Batch, "puts">, isWhole = false): void {
    let isTouched = isWhole;
    for (const { key, value } of puts)
      if (key.startsWith(WORKERS_PREFIX)) {
        const { state, isToDrain } = okOrFailure("shadow", decodeRecord(workerRecord, key, value));
        const why = MEMBER_STATE.test(state) ? (isToDrain ? "to drain" : "") : state;
        this.#whyNot.set(key.slice(WORKERS_PREFIX.length), why);
        isTouched = true;
      } else if (key === ASSIGNMENT_KEY) {
        const assignment = okOrFailure("shadow", decodeRecord(assignmentRecord, key, value));
        const { epoch } = this.#assignment;
        if (!isWhole && assignment.epoch !== epoch + 1)
          throw new Violation(`K5: the assignment epoch goes from ${epoch} to ${assignment.epoch}`);
        this.#assignment = assignment;
        isTouched = true;
      }
    if (isTouched) this.#checkMembers();
  }

  #checkMembers(): void {
    for (const member of this.#assignment.members) {
      const why = this.#whyNot.get(member) ?? "not registered";
      if (why !== "") throw new Violation(`K5: ${member} is on the ring and ${why}`);
    }
  }
}
