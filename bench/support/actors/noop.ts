// The item of a module that does nothing: what an event of an actor is compared with.

export function noop(): number {
  return 1;
}
