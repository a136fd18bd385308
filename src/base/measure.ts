// A number that was looked for in an output.

/** The number, which is finite, or why there is none. */
export type Measure = number | "missing" | "not a number";
