// The reason of a promise's rejection, as a value to look at.
import { RolloutError } from "../../src/base/errors.ts";

/** Throws when the promise is fulfilled. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in outcome)
    throw new Error(`fulfilled with ${String(outcome.value)}, where a rejection is expected`);
  return outcome.error;
}

/** Throws when the promise is fulfilled, or rejected with something that is not of the table. */
export async function failureOf(promise: Promise<unknown>): Promise<RolloutError> {
  const error = await rejectionOf(promise);
  if (error instanceof RolloutError) return error;
  throw new Error("rejected with an error that is not of the table", { cause: error });
}
