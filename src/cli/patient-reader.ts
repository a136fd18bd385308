// Reading the same again and again, for whoever watches: a coordinator that is killed and started again is waited for, and
// its absence is said once. One that has never answered is an error like any other.
import { RolloutError } from "../base/errors.ts";

export class PatientReader {
  readonly #tell: (sentence: string) => void;
  #hasAnswered = false;
  #isAway = false;

  constructor(tell: (sentence: string) => void) {
    this.#tell = tell;
  }

  /** Undefined while the coordinator is away. Throws what waiting does not help. */
  async read<T>(ask: () => Promise<T>): Promise<T | undefined> {
    try {
      const answer = await ask();
      if (this.#isAway) this.#tell("The coordinator answers again.");
      [this.#hasAnswered, this.#isAway] = [true, false];
      return answer;
    } catch (error) {
      if (!this.#hasAnswered || !(error instanceof RolloutError) || error.row.retry === "never") throw error;
      if (!this.#isAway) this.#tell(`Waiting: ${error.message}.`);
      this.#isAway = true;
      return undefined;
    }
  }
}
