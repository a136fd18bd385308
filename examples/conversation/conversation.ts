// A conversation with a model: a durable actor for each, whose turns are events. The call of the model is an invoked promise, which runs on any
// worker, may be tried again, and is dropped when somebody speaks while the model thinks; a reminder comes by `after`. docs/actors.md tells of it.
import { defineActor } from "rollout/actors";
import { assign, fromPromise, setup } from "xstate";

interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** Where a server that speaks as OpenAI's does is, and after how long a silence is noticed. */
const { MODEL_URL = "http://127.0.0.1:8000/v1", SILENCE_MS = "86400000" } = process.env;

async function ask(messages: readonly Message[], signal: AbortSignal): Promise<string> {
  const response = await fetch(`${MODEL_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "toy", messages }),
    signal,
  });
  if (!response.ok) throw new Error(`the model answers with ${response.status}`);
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]?.message.content ?? "";
}

export const conversation = defineActor({
  machine: setup({
    types: {
      context: {} as { messages: Message[] },
      events: {} as { type: "say"; text: string } | { type: "bye" },
      output: {} as { turns: number },
    },
    actors: {
      model: fromPromise<string, readonly Message[]>(({ input, signal }) => ask(input, signal)),
    },
    delays: { silence: Number(SILENCE_MS) },
    actions: {
      hear: assign(({ context, event }) =>
        event.type === "say"
          ? { messages: [...context.messages, { role: "user" as const, content: event.text }] }
          : {},
      ),
      speak: assign(({ context }, content: string) => ({
        messages: [...context.messages, { role: "assistant" as const, content }],
      })),
    },
  }).createMachine({
    context: { messages: [] },
    initial: "listening",
    on: { bye: ".over" },
    states: {
      listening: {
        tags: "answered",
        on: { say: { target: "thinking", actions: "hear" } },
        after: { silence: "reminded" },
      },
      thinking: {
        on: { say: { target: "thinking", reenter: true, actions: "hear" } },
        invoke: {
          src: "model",
          input: ({ context }) => context.messages,
          onDone: {
            target: "listening",
            actions: { type: "speak", params: ({ event }) => event.output },
          },
          onError: {
            target: "listening",
            actions: { type: "speak", params: "I cannot answer just now." },
          },
        },
      },
      reminded: {
        entry: { type: "speak", params: "Are you still there?" },
        on: { say: { target: "thinking", actions: "hear" } },
      },
      over: { type: "final" },
    },
    output: ({ context }) => ({ turns: context.messages.length }),
  }),
});
