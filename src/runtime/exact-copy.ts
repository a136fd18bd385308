// A value as JSON gives it back, or the place in it where JSON would give back something else: what is not kept exactly is named by its
// path, and never stored changed.

/** A value that JSON would not give back as it is, by its path. */
export class InexactValue extends TypeError {
  constructor(fault: string) {
    super(`${fault}, which JSON cannot hold`);
  }
}

/** Puts a value of JSON in place of an object; undefined for one that it says nothing of. */
export type Replacing = (value: object, path: string) => unknown;

const DEPTH_MAX = 64;
const KEEPS_ALL: Replacing = () => undefined;

/**
 * The value itself where nothing in it is replaced, a copy else. Throws InexactValue. A member that is `undefined` may be missing afterwards,
 * for it reads the same.
 */
export function exactCopy(value: unknown, path: string, replace: Replacing = KEEPS_ALL): unknown {
  return copied(value, path, replace, 0);
}

/** A value of JSON with something else in place of some objects: a copy where anything in it is replaced. */
export function withReplaced(value: unknown, replace: (value: object) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const replaced = replace(value);
  if (replaced !== undefined) return replaced;
  return copyOnWrite(value as Container, (member) => withReplaced(member, replace));
}

type Container = Readonly<Record<string, unknown>> | readonly unknown[];

function copied(value: unknown, path: string, replace: Replacing, depth: number): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw new InexactValue(`${path} is ${value}`);
  }
  if (typeof value !== "object")
    throw new InexactValue(`${path} is ${value === undefined ? "undefined" : `a ${typeof value}`}`);
  const replaced = replace(value, path);
  if (replaced !== undefined) return replaced;
  if (depth > DEPTH_MAX) throw new InexactValue(`${path} is deeper than ${DEPTH_MAX} levels, or a cycle`);
  if (Array.isArray(value))
    return copyOnWrite(value, (entry, at) => copied(entry, `${path}[${at}]`, replace, depth + 1));
  if (!isPlain(value)) throw new InexactValue(`${path} is a ${nameOfClass(value)}`);
  if (Object.getOwnPropertySymbols(value).length > 0)
    throw new InexactValue(`${path} has a member that is named by a symbol`);
  return copyOnWrite(value as Container, (member, name) =>
    member === undefined ? undefined : copied(member, `${path}.${name}`, replace, depth + 1),
  );
}

function copyOnWrite(value: Container, copy: (member: unknown, name: string | number) => unknown): unknown {
  return Array.isArray(value)
    ? copyList(value, copy)
    : copyFields(value as Readonly<Record<string, unknown>>, copy);
}

function copyList(list: readonly unknown[], copy: (entry: unknown, at: number) => unknown): unknown {
  let changed: unknown[] | undefined;
  // By numbers, for an iteration passes over holes.
  for (let at = 0; at < list.length; at++) {
    const entry = copy(list[at], at);
    if (entry === list[at]) continue;
    changed ??= [...list];
    changed[at] = entry;
  }
  return changed ?? list;
}

function copyFields(
  fields: Readonly<Record<string, unknown>>,
  copy: (member: unknown, name: string) => unknown,
): unknown {
  let changed: Record<string, unknown> | undefined;
  for (const name of Object.keys(fields)) {
    const member = copy(fields[name], name);
    if (member === fields[name]) continue;
    changed ??= { ...fields };
    changed[name] = member;
  }
  return changed ?? fields;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function nameOfClass(value: object): string {
  const { constructor } = value as { readonly constructor?: { readonly name?: unknown } };
  return typeof constructor?.name === "string" && constructor.name !== ""
    ? constructor.name
    : "object of a class";
}
