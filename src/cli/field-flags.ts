// Flags that say in which fields of a line its item has its key and its event id: `submit` and `run` have the same.
import { isField } from "../client/item-fields.ts";
import type { ItemFields } from "../client/item-fields.ts";
import { FlagValueError, Flags } from "./oclif.ts";

const fieldFlag = Flags.custom({
  helpValue: "NAME",
  parse: (input, _context, { name }) => {
    if (isField(input)) return Promise.resolve(input);
    throw new FlagValueError(
      `--${name} takes a member's name, or a JSON pointer such as /order/id, not ${input || '""'}`,
    );
  },
});

export const fieldFlags = {
  "key-field": fieldFlag({
    summary: "Member or JSON pointer of a key: its items run one at a time, in order.",
  }),
  "event-id-field": fieldFlag({
    summary: "Member or JSON pointer of an event's id: one id is one item of its key.",
  }),
};

export const KEYLESS_EVENT =
  "an event is sent to an actor by its key: give --key-field, which says where lines have it";

/** Undefined when no key was asked for. `refuse` throws. */
export function fieldsOf(
  flags: {
    readonly "key-field"?: string | undefined;
    readonly "event-id-field"?: string | undefined;
    readonly text: boolean;
  },
  refuse: (detail: string) => Error,
): ItemFields | undefined {
  const { "key-field": key, "event-id-field": eventId, text } = flags;
  if (key === undefined && eventId === undefined) return undefined;
  if (key === undefined) throw refuse("--event-id-field names items within keys: give --key-field too");
  if (text) throw refuse("--key-field reads a field of JSON: it does not go with --text");
  return { key, eventId };
}
