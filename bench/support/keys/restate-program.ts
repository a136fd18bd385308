// The service of Restate's virtual object: a handler that runs one at a time for each key, and leaves the object's state with its end.
// Arguments: where its package is installed, and the port.
import { installed } from "../peers/role.ts";

interface State {
  readonly count: number;
  readonly pad: string;
}

interface Context {
  get(name: string): Promise<State | null>;
  set(name: string, state: State): void;
}

interface Restate {
  readonly object: ((options: object) => object) & object;
  readonly serve: (options: {
    readonly services: readonly object[];
    readonly port: number;
  }) => Promise<unknown>;
}

const PAD = "x".repeat(260);
const [directory = "", port = "0"] = process.argv.slice(2);
const { object, serve } = installed(directory, "@restatedev/restate-sdk") as Restate;
const counter = object({
  name: "counter",
  handlers: {
    async add(context: Context): Promise<number> {
      const { count } = (await context.get("state")) ?? { count: 0 };
      context.set("state", { count: count + 1, pad: PAD });
      return count + 1;
    },
    // Behind all that were sent to the key before.
    async count(context: Context): Promise<number> {
      return (await context.get("state"))?.count ?? 0;
    },
  },
});
await serve({ services: [counter], port: Number(port) });
process.send?.("ready");
