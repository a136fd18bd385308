// Times as a person says them.

const STEPS = [
  { unit: "d", ms: 86_400_000 },
  { unit: "h", ms: 3_600_000 },
  { unit: "m", ms: 60_000 },
  { unit: "s", ms: 1_000 },
] as const;

/** "3s ago", "2h ago"; "now" below a second. One unit: the next smaller one tells a person nothing. */
export function renderAge(ageMs: number): string {
  const step = STEPS.find(({ ms }) => ageMs >= ms);
  return step === undefined ? "now" : `${Math.floor(ageMs / step.ms)}${step.unit} ago`;
}
