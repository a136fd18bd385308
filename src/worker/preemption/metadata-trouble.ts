// What a worker says of a metadata server that does not answer as it should: one line when that begins or becomes something
// else, and one when it is over. A worker is asked nothing by this: it works on, and may be preempted without a notice.
import type { Logger } from "../../observe/log.ts";
import type { Cloud } from "./compute-hint.ts";

export class ServerTrouble {
  readonly #log: Logger;
  #known: string | undefined;

  constructor(log: Logger, cloud: Cloud) {
    this.#log = log.child({ cloud });
  }

  /** `isSilent`: there was no answer in time, however long that was. */
  report(reason: string, isSilent = false): void {
    const kind = isSilent ? "silent" : reason;
    if (kind === this.#known) return;
    this.#known = kind;
    this.#log.warn(
      "the metadata server cannot be used, so a preemption may come without notice; trying again",
      {
        reason,
      },
    );
  }

  over(): void {
    if (this.#known !== undefined) this.#log.info("the metadata server answers again");
    this.#known = undefined;
  }
}
