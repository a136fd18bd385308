// What a JSON pointer names in a value that was read exactly.
import { memberOf } from "../../../base/exact-json.ts";

/** Undefined when there is none. */
export function atPointer(value: unknown, pointer: string): unknown {
  const names = pointer.split("/").slice(1);
  return names.reduce<unknown>(
    (at, name) => memberOf(at, name.replaceAll("~1", "/").replaceAll("~0", "~")),
    value,
  );
}
