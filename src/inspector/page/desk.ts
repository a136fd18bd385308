// The parts of the page that every view has at hand, and the shape of a view.
import type { Deed } from "../page-messages.ts";
import type { Cluster, Topic } from "./known/cluster.ts";
import type { ServerCalls } from "./server-calls.ts";

export interface Desk {
  readonly cluster: Cluster;
  readonly calls: ServerCalls;
  /** Asks for confirmation, has it done, and shows the answer. */
  readonly ask: (deed: Deed) => void;
  /** Milliseconds since 1970, by the clock of the machine that serves the page. */
  readonly nowMs: () => number;
}

export interface View {
  readonly element: HTMLElement;
  readonly title: string;
  /** It is looked at from now on; `path` is the rest of its address. */
  readonly show: (path: readonly string[]) => void;
  readonly hide?: () => void;
  /** Once a frame at most, while it is looked at. */
  readonly refresh: (topics: ReadonlySet<Topic>) => void;
}

/** An address within the page, by its parts. */
export function addressOf(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function partsOf(hash: string): readonly string[] {
  return hash
    .replace(/^#\/?/, "")
    .split("/")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    })
    .filter((part) => part !== "");
}
