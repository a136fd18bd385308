// One row of the table of events: how loud it is, and words about it and its fields, each with the type of its values.

export type EventLevel = "debug" | "info" | "warn" | "error";

declare const type: unique symbol;
/** Words about a field, which has values of this type. */
export type Field<Value> = string & { readonly [type]?: Value };

export type ValueOf<Said> = Said extends { readonly [type]?: infer Value }
  ? Exclude<Value, undefined>
  : never;

export interface EventRow {
  readonly level: EventLevel;
  readonly doc: string;
  readonly fields: Readonly<Record<string, string>>;
}

export function of<Value>(doc: string): Field<Value> {
  return doc;
}

export const text = (doc: string): Field<string> => doc;
export const number = (doc: string): Field<number> => doc;
export const perhaps = (doc: string): Field<number | null> => doc;
export const perhapsText = (doc: string): Field<string | null> => doc;
