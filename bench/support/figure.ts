// The yield of a benchmark.

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

export interface Bench {
  readonly name: string;
  /** It takes an hour, or is part of another: it runs when it is named, and not among all. */
  readonly isLong?: true;
  /** `note` says what is going on, for whoever waits. */
  run(note: (line: string) => void): Promise<readonly Figure[] | Yield>;
}

/** Figures, and what `--json` has beside them under the same names. */
export type Yield = { readonly figures: readonly Figure[] } & Readonly<Record<string, unknown>>;

export function round(value: number, digits = 0): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}
