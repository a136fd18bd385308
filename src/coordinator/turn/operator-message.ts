// Answers to operators, as the coordinator fills them: the messages of proto themselves, without their envelope.
import type { Message } from "@bufbuild/protobuf";

/** Every field that a message always has has to be there. */
export type Filled<M> = {
  readonly [Field in keyof M as Exclude<Field, "$typeName" | "$unknown" | "coordinator">]: FilledValue<
    M[Field]
  >;
};

type FilledValue<Value> = Value extends (infer Element)[]
  ? FilledValue<Element>[]
  : Value extends Message
    ? Filled<Value>
    : Value;

/** The name of a constant of an enum: `TOO_LARGE` of `too_large`. */
export function constantOf<Word extends string>(word: Word): Uppercase<Word> {
  return word.toUpperCase() as Uppercase<Word>;
}
