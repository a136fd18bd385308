// The chart of the run as its next version may be: one state of it has another name. Loaded before the program, it changes two source
// files as Node reads them, and so does whoever changes that chart: the chart itself, and its predecessors in the registry.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const STATES = ["Open.Active", "Open.Paused", "Sealed.Active", "Sealed.Paused", "Complete", "Cancelled"];
/** The structure of the version that 0.1 has. */
const STRUCTURE = "b57bc0311c96b785";

const next = (text: string): string => text.replaceAll(/\bActive\b/g, "Busy");
const states = Object.fromEntries(STATES.map((state) => [state, next(state)]));
const predecessor = JSON.stringify({ version: "1", structure: STRUCTURE, states });

const CHANGES: Readonly<Record<string, (text: string) => string>> = {
  "/machines/run.ts": (text) => next(replaced(text, 'version: "1"', 'version: "2"')),
  "/machines/index.ts": (text) =>
    replaced(
      text,
      "machine: run, migrations: [], predecessors: []",
      `machine: run, migrations: [], predecessors: [${predecessor}]`,
    ),
};

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const [, change] = Object.entries(CHANGES).find(([file]) => url.endsWith(file)) ?? [];
    if (change === undefined) return loaded;
    return { ...loaded, source: change(readFileSync(new URL(url), "utf8")) };
  },
});

function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`there is no ${from} to be changed`);
  return text.replace(from, to);
}
