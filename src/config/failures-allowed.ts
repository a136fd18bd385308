// How many items may fail before a run stops, as people write it: a number (`"10"`), or a share of what is final (`"5%"`).

export type FailuresAllowed =
  { readonly kind: "count"; readonly count: number } | { readonly kind: "share"; readonly percent: number };

/** Undefined when the text is neither a whole number from 1 nor a whole percentage from 1 to 100. */
export function parseFailuresAllowed(text: string): FailuresAllowed | undefined {
  const match = /^([1-9]\d{0,8})(%?)$/.exec(text);
  if (match === null) return undefined;
  const number = Number(match[1]);
  if (match[2] === "") return { kind: "count", count: number };
  return number <= 100 ? { kind: "share", percent: number } : undefined;
}

export function formatFailuresAllowed(allowed: FailuresAllowed): string {
  return allowed.kind === "count" ? `${allowed.count}` : `${allowed.percent}%`;
}
