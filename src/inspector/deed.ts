// A deed that a page asks for, as it came in: read as JSON of a stranger's, and nothing of it is guessed.
import { LIMITS } from "../config/limits.ts";
import type { Deed } from "./page-messages.ts";

/** Undefined when it is none. */
export function readDeed(body: string): Deed | undefined {
  const asked = objectOf(body);
  switch (asked?.["deed"]) {
    case "pause":
    case "resume":
    case "cancel":
      return hasOnly(asked) ? { deed: asked["deed"] } : undefined;
    case "drain": {
      const { worker_id } = asked;
      return hasOnly(asked, "worker_id") && isName(worker_id) ? { deed: "drain", worker_id } : undefined;
    }
    case "retry": {
      if (hasOnly(asked)) return { deed: "retry" };
      const { item } = asked;
      return hasOnly(asked, "item") && isName(item) ? { deed: "retry", item } : undefined;
    }
    default:
      return undefined;
  }
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** A word that is not understood may mean something else than what would be done: an `item` that is misspelt is not every item. */
function hasOnly(asked: Readonly<Record<string, unknown>>, ...names: readonly string[]): boolean {
  return Object.keys(asked).every((name) => name === "deed" || names.includes(name));
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= LIMITS.itemTextBytes;
}
