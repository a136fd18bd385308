// The answers of this server: the same to the same request, always. There is no model in it.
import { createHash } from "node:crypto";

export type Body = Readonly<Record<string, unknown>>;

/** A choice: the words of which it is made, to be sent at once or one by one. */
export interface Plan {
  readonly id: string;
  readonly model: string;
  readonly choices: readonly (readonly string[])[];
  readonly usage: Readonly<Record<string, number>>;
}

/** A fixed moment: the answer to the same request is the same tomorrow. */
const CREATED = 1_767_225_600;
const EMBEDDING_DIMENSIONS = 8;
const CHOICES_MAX = 16;

/** `asked`: the text to answer; `prefix`: of the id. */
export function planOf(prefix: string, body: Body, asked: string): Plan {
  const words = wordsOf(asked);
  const count = typeof body["n"] === "number" ? Math.min(Math.max(body["n"], 1), CHOICES_MAX) : 1;
  const limit = typeof body["max_tokens"] === "number" ? body["max_tokens"] : Number.POSITIVE_INFINITY;
  const choices = Array.from({ length: count }, (_, at) => answerTo(asked, at).slice(0, limit));
  const completion = choices.reduce((sum, one) => sum + one.length, 0);
  return {
    id: `${prefix}-${digest(JSON.stringify(body)).slice(0, 24)}`,
    model: modelOf(body),
    choices,
    usage: {
      prompt_tokens: words.length,
      completion_tokens: completion,
      total_tokens: words.length + completion,
    },
  };
}

export function modelOf(body: Body): string {
  return typeof body["model"] === "string" ? body["model"] : "toy";
}

/** The text of the last message; undefined when there is none. */
export function lastMessageOf({ messages }: Body): string | undefined {
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  const content: unknown =
    typeof last === "object" && last !== null && "content" in last ? last.content : undefined;
  if (Array.isArray(content)) return JSON.stringify(content);
  return typeof content === "string" ? content : undefined;
}

export function chatCompletion({ id, model, choices, usage }: Plan): Body {
  return {
    id,
    object: "chat.completion",
    created: CREATED,
    model,
    choices: choices.map((words, index) => ({
      index,
      message: { role: "assistant", content: words.join("") },
      finish_reason: "stop",
    })),
    usage,
  };
}

export function textCompletion({ id, model, choices, usage }: Plan): Body {
  return {
    id,
    object: "text_completion",
    created: CREATED,
    model,
    choices: choices.map((words, index) => ({ index, text: words.join(""), finish_reason: "stop" })),
    usage,
  };
}

/** The same in pieces. With `withUsage` the last one has the usage and no choice. */
export function* chatPieces({ id, model, choices, usage }: Plan, withUsage: boolean): Generator<Body> {
  const piece = (rest: Body): Body => ({
    id,
    object: "chat.completion.chunk",
    created: CREATED,
    model,
    ...rest,
  });
  for (const [index, words] of choices.entries()) {
    yield piece({ choices: [{ index, delta: { role: "assistant", content: "" }, finish_reason: null }] });
    for (const content of words)
      yield piece({ choices: [{ index, delta: { content }, finish_reason: null }] });
    yield piece({ choices: [{ index, delta: {}, finish_reason: "stop" }] });
  }
  if (withUsage) yield piece({ choices: [], usage });
}

export function* textPieces({ id, model, choices, usage }: Plan, withUsage: boolean): Generator<Body> {
  const piece = (rest: Body): Body => ({ id, object: "text_completion", created: CREATED, model, ...rest });
  for (const [index, words] of choices.entries()) {
    for (const text of words) yield piece({ choices: [{ index, text, finish_reason: null }] });
    yield piece({ choices: [{ index, text: "", finish_reason: "stop" }] });
  }
  if (withUsage) yield piece({ choices: [], usage });
}

export function embeddings(body: Body): Body {
  const { input } = body;
  const texts: readonly unknown[] = Array.isArray(input) ? input : [input];
  const tokens = texts.reduce<number>((sum, text) => sum + wordsOf(String(text)).length, 0);
  return {
    object: "list",
    model: modelOf(body),
    data: texts.map((text, index) => ({ object: "embedding", index, embedding: vectorOf(String(text)) })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

export function models(names: readonly string[]): Body {
  const data = names.map((id) => ({ id, object: "model", created: CREATED, owned_by: "nobody" }));
  return { object: "list", data };
}

function answerTo(asked: string, choice: number): string[] {
  const count = wordsOf(asked).length;
  const more = choice === 0 ? "" : ` This is choice ${choice + 1}.`;
  const text = `You asked in ${count} word${count === 1 ? "" : "s"}: ${asked}${more}`;
  return text.match(/\s*\S+|\s+$/g) ?? [];
}

function wordsOf(text: string): string[] {
  return text.match(/\S+/g) ?? [];
}

/** A vector of length one. */
function vectorOf(text: string): number[] {
  const bytes = createHash("sha256").update(text).digest().subarray(0, EMBEDDING_DIMENSIONS);
  const values = [...bytes].map((byte) => byte - 127.5);
  const length = Math.hypot(...values);
  return values.map((value) => Number((value / length).toFixed(6)));
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
