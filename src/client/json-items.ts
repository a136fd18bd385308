// Values of a program as items: each is one line of JSON, and bytes are a line as they are.
import { describeError, failure } from "../base/errors.ts";

/** Throws input_invalid, which counts values from 1, for what JSON has not and for what is too large; and what `values` throws. */
export async function* jsonItems(
  values: Iterable<unknown> | AsyncIterable<unknown>,
  itemBytesMax: number,
): AsyncGenerator<Uint8Array> {
  let number = 0;
  for await (const value of values) {
    number++;
    const refuse = (reason: string): Error =>
      failure("input_invalid", { file: "the items", line: number, reason });
    const bytes = value instanceof Uint8Array ? value : jsonBytes(value, refuse);
    if (bytes.length > itemBytesMax)
      throw refuse(`it has ${bytes.length} bytes, and an item has ${itemBytesMax} at most (limits.payload)`);
    yield bytes;
  }
}

/** Undefined for a function, a symbol and undefined itself, which its own type does not say. */
const stringify: (value: unknown) => string | undefined = JSON.stringify;

function jsonBytes(value: unknown, refuse: (reason: string) => Error): Uint8Array {
  let text: string | undefined;
  try {
    text = stringify(value);
  } catch (error) {
    // A cycle, a BigInt, a toJSON that throws.
    throw refuse(`it is no JSON: ${describeError(error)}`);
  }
  if (text === undefined) throw refuse("JSON has no such value");
  return Buffer.from(text);
}
