// The two frozen forms of an operator message: the value that the library gives, and the object that `--json` prints. Both are
// read off the message's descriptor: a field that proto has is in both, by its name there.
import type { DescField, DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { assert } from "../base/assert.ts";
import { isoTime } from "../base/clock.ts";
import { CoordinatorEnvelopeSchema } from "../gen/rollout/v1/common_pb.ts";

type Hidden = "$typeName" | "$unknown" | "coordinator";
type Optional<M> = { [Field in keyof M]-?: undefined extends M[Field] ? Field : never }[keyof M];

/** The library's form: without the envelope, enums by their names, and undefined for what is absent. */
export type Plain<M> = {
  readonly [Field in keyof M as Field extends Hidden | Optional<M> ? never : Field]: PlainValue<M[Field]>;
} & { readonly [Field in Exclude<Optional<M>, Hidden>]: PlainValue<NonNullable<M[Field]>> | undefined };

type PlainValue<Value> = Value extends readonly (infer Element)[]
  ? readonly PlainValue<Element>[]
  : Value extends Message
    ? Plain<Value>
    : Value extends Uint8Array | string | boolean
      ? Value
      : Value extends number
        ? number extends Value
          ? number
          : string
        : { readonly [Key in keyof Value]: PlainValue<Value[Key]> };

export function plainOf<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): Plain<MessageShape<Desc>> {
  return formed(schema, message, LIBRARY) as Plain<MessageShape<Desc>>;
}

/** The stable form of `--json`, of a message or of its plain form: fields in the order of proto, null for what is absent. */
export function jsonOf<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc> | Plain<MessageShape<Desc>>,
): Readonly<Record<string, unknown>> {
  return formed(schema, message, JSON_OBJECT);
}

/** The message that an answer is about: every coordinator of this wire has it there. */
export function told<Part>(part: Part | undefined): Part {
  assert(part !== undefined, "an answer says what was asked");
  return part;
}

interface Form {
  readonly nameOf: (field: DescField) => string;
  readonly timeOf: (wallMs: number) => unknown;
  readonly absent: undefined | null;
}

const LIBRARY: Form = {
  nameOf: ({ localName }) => localName,
  timeOf: (wallMs) => wallMs,
  absent: undefined,
};

const TIME = /_at_ms$/;

const JSON_OBJECT: Form = {
  // A name of its own for JSON counts; every field has one that is made of its name.
  nameOf: ({ name, jsonName, localName }) => (jsonName === localName ? name.replace(TIME, "_at") : jsonName),
  timeOf: isoTime,
  absent: null,
};

function formed(schema: DescMessage, message: object, form: Form): Record<string, unknown> {
  const values = message as Readonly<Record<string, unknown>>;
  const fields = schema.fields.filter((field) => field.message !== CoordinatorEnvelopeSchema);
  return Object.fromEntries(
    fields.map((field) => [form.nameOf(field), formedField(field, values[field.localName], form)]),
  );
}

function formedField(field: DescField, value: unknown, form: Form): unknown {
  if (value === undefined) return form.absent;
  if (Array.isArray(value)) return value.map((element) => formedValue(field, element, form));
  if (field.fieldKind !== "map") return formedValue(field, value, form);
  const entries = Object.entries(value as object).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, formedValue(field, each, form)]));
}

function formedValue(field: DescField, value: unknown, form: Form): unknown {
  if (field.message !== undefined) return formed(field.message, value as object, form);
  // A newer coordinator may say a word that this version does not have.
  if (field.enum !== undefined && typeof value === "number")
    return value === 0 ? "unknown" : (field.enum.value[value]?.localName.toLowerCase() ?? "unknown");
  return typeof value === "number" && TIME.test(field.name) ? form.timeOf(value) : value;
}
