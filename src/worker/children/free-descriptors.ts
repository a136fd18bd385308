// Whether this process has descriptors for the streams of another child. They arrive whether there is room or not, and what
// finds none is lost on its way, with the one that hands it over: so it is asked before.
import { openDescriptors, openFilesLimit } from "../../base/process-table.ts";

/** For files that are open for a moment. */
const MARGIN = 4;

export class DescriptorRoom {
  readonly limit: number;
  readonly #count: () => number;
  /** How many may be taken before it is counted again. */
  #known = 0;
  #expected = 0;

  constructor(limit: number = openFilesLimit() ?? Infinity, count: () => number = countDescriptors) {
    this.limit = limit;
    this.#count = count;
  }

  /** False when there may be no room for so many. True: they are expected until `arrived` says how many of them have. */
  expect(descriptors: number): boolean {
    if (this.#known < descriptors) {
      const free = this.limit - this.#count() - this.#expected - MARGIN;
      if (free < descriptors) return false;
      // Others take some meanwhile: half of them is ours without another look.
      this.#known = Math.max(descriptors, Math.floor(free / 2));
    }
    this.#known -= descriptors;
    this.#expected += descriptors;
    return true;
  }

  /** They are here, or will not come. */
  arrived(descriptors: number): void {
    this.#expected -= descriptors;
  }
}

/** Infinitely many when they cannot even be counted: that takes one. */
function countDescriptors(): number {
  return openDescriptors()?.length ?? Infinity;
}
