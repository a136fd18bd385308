// Keys and their items in numbers, kept as they move.
import type { KeyContext } from "../../../machines/key.ts";
import type { Row } from "../../runtime/compile.ts";
import { DELAYED, keyChart, PARKED, RUNNING, WAITING } from "./key.ts";

export class KeyCounts {
  readonly #inState = new Array<number>(keyChart.states.length).fill(0);
  #behindParked = 0;
  #mail = 0;

  came(row: Row<KeyContext>): void {
    this.#add(row, 1);
  }

  went(row: Row<KeyContext>): void {
    this.#add(row, -1);
  }

  #add({ state, context }: Row<KeyContext>, by: 1 | -1): void {
    this.#inState[state] = (this.#inState[state] ?? 0) + by;
    this.#mail += by * context.mail;
    if (state === PARKED) this.#behindParked += by * context.mail;
  }

  get waiting(): number {
    return this.#in(WAITING);
  }

  get delayed(): number {
    return this.#in(DELAYED);
  }

  get running(): number {
    return this.#in(RUNNING);
  }

  get parked(): number {
    return this.#in(PARKED);
  }

  /** Items that are to run, those included that do. */
  get items(): number {
    return this.#mail;
  }

  /** Items that are to run and that parked keys keep. */
  get behindParked(): number {
    return this.#behindParked;
  }

  #in(state: number): number {
    return this.#inState[state] ?? 0;
  }
}
