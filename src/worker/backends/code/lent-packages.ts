// Packages of ours that a user's file may import without having them, and the same package as that file sees it.
import { registerHooks } from "node:module";

const LENT = /^xstate(?:\/|$)/;
/** Followed by the file whose view it is, and what it imports. */
const AS_SEEN_FROM = "rollout-as-seen-from:";

/** A user's file may import what this program has anyway, without installing it. */
export function lendOurPackages(): void {
  registerHooks({
    resolve(asked, asking, next) {
      const [specifier, context] = asked.startsWith(AS_SEEN_FROM)
        ? foreignView(asked.slice(AS_SEEN_FROM.length), asking)
        : [asked, asking];
      try {
        return next(specifier, context);
      } catch (error) {
        if (!LENT.test(specifier)) throw error;
        return next(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}

function foreignView<Context extends object>(text: string, context: Context): [string, Context] {
  const [specifier = "", ...parent] = text.split(" ");
  return [specifier, { ...context, parentURL: parent.join(" ") }];
}

/** The module that the file gets when it imports that package. */
export async function importAsSeenFrom(specifier: string, fileUrl: string): Promise<unknown> {
  return await import(`${AS_SEEN_FROM}${specifier} ${fileUrl}`);
}
