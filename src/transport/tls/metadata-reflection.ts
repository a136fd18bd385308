// Three functions on `Reflect` that the certificate library's own dependency demands before it loads, and of which it
// uses no more. The one file that does something at import: a module cannot ask for it earlier. Defines nothing that is there.
const metadata = new WeakMap<object, Map<unknown, unknown>>();

function getOwnMetadata(key: unknown, target: object): unknown {
  return metadata.get(target)?.get(key);
}

function getMetadata(key: unknown, target: object): unknown {
  for (let at: object | null = target; at !== null; at = Reflect.getPrototypeOf(at)) {
    const value = getOwnMetadata(key, at);
    if (value !== undefined) return value;
  }
  return undefined;
}

function defineMetadata(key: unknown, value: unknown, target: object): void {
  const entries = metadata.get(target) ?? new Map<unknown, unknown>();
  metadata.set(target, entries.set(key, value));
}

if (!("getMetadata" in Reflect)) {
  Object.assign(Reflect, { getMetadata, getOwnMetadata, defineMetadata });
}
