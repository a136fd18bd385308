// What a benchmark yields.

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

export interface Bench {
  readonly name: string;
  /** `note` says what is going on, for whoever waits. */
  run(note: (line: string) => void): Promise<readonly Figure[]>;
}

export function round(value: number, digits = 0): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}
