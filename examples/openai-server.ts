// The toy server as a program: `node examples/openai-server.ts --port 8000`.
import { parseArgs } from "node:util";
import { OpenAiServer } from "./openai-server/server.ts";
import type { Behaviour } from "./openai-server/behaviour.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "8000" },
    model: { type: "string", multiple: true },
    "api-key": { type: "string" },
    /** Milliseconds before each answer. */
    latency: { type: "string", default: "0" },
    /** Requests at once; more are told to come back later. */
    capacity: { type: "string" },
    /** Every so many requests one is throttled, fails, or is cut off. */
    "throttle-every": { type: "string" },
    "fail-every": { type: "string" },
    "cut-every": { type: "string" },
    /** Milliseconds that it pretends to load a model. */
    load: { type: "string", default: "0" },
  },
});

const every = [
  { text: values["throttle-every"], behaviour: { kind: "throttle", retryAfter: "1" } },
  { text: values["fail-every"], behaviour: { kind: "status", status: 500 } },
  { text: values["cut-every"], behaviour: { kind: "cut" } },
] as const satisfies readonly { text: string | undefined; behaviour: Behaviour }[];

const server = await OpenAiServer.start({
  port: Number(values.port),
  latencyMs: Number(values.latency),
  readyAfterMs: Number(values.load),
  every: every.flatMap(({ text, behaviour }) =>
    text === undefined ? [] : [{ requests: Number(text), behaviour }],
  ),
  ...(values.model && { models: values.model }),
  ...(values["api-key"] !== undefined && { apiKey: values["api-key"] }),
  ...(values.capacity !== undefined && { capacity: Number(values.capacity) }),
  onDie: () => process.exit(139),
});
console.error(`answers at ${server.url}; Ctrl-C ends it`);
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void server.close().then(() => process.exit(0)));
