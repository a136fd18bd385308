// Programmer errors. A failed assertion means that this code is wrong, not that the world is: nothing may
// catch it to go on, because state that broke an invariant once cannot be trusted afterwards.

export class AssertionFailed extends Error {
  override readonly name = "AssertionFailed";
}

/** Ends the computation when an invariant does not hold. `message` names the invariant (`"C3: …"`). */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFailed(message);
}

/** The default branch of an exhaustive switch: the compiler refuses it while a variant is missing. */
export function unreachable(value: never, what: string): never {
  throw new AssertionFailed(`unexpected ${what}: ${JSON.stringify(value)}`);
}
