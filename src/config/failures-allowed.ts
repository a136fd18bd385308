// How many items may fail before a run stops, as people write it: a number (`"10"`), a share of what is final (`"5%"`), or all
// of them (`"none"` is the limit then).

export type FailuresAllowed =
  | { readonly kind: "count"; readonly count: number }
  | { readonly kind: "share"; readonly percent: number }
  /** However many, even from the first on. */
  | { readonly kind: "unlimited" };

const UNLIMITED = "none";

/** Undefined when the text is neither a whole number from 1 nor a whole percentage from 1 to 100, nor `none`. */
export function parseFailuresAllowed(text: string): FailuresAllowed | undefined {
  if (text === UNLIMITED) return { kind: "unlimited" };
  const match = /^([1-9]\d{0,8})(%?)$/.exec(text);
  if (match === null) return undefined;
  const number = Number(match[1]);
  if (match[2] === "") return { kind: "count", count: number };
  return number <= 100 ? { kind: "share", percent: number } : undefined;
}

export function formatFailuresAllowed(allowed: FailuresAllowed): string {
  switch (allowed.kind) {
    case "count":
      return `${allowed.count}`;
    case "share":
      return `${allowed.percent}%`;
    case "unlimited":
      return UNLIMITED;
  }
}
