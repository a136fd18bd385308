import { expect } from "chai";
import {
  chatCompletion,
  chatPieces,
  planOf,
  textCompletion,
  textPieces,
} from "../../../../../examples/openai-server/answers.ts";
import {
  Completion,
  CompletionBody,
  EventStream,
} from "../../../../../src/worker/backends/http/completion.ts";

function assemble(...pieces: readonly unknown[]): unknown {
  const completion = new Completion();
  for (const piece of pieces) expect(completion.add(JSON.stringify(piece))).to.equal(true);
  return JSON.parse(completion.format());
}

describe("the pieces of a streamed completion", () => {
  const plan = planOf("x", { model: "toy", n: 2 }, "what is this, then?");

  it("make the object that the server would have answered at once, usage and all choices included", () => {
    expect(assemble(...chatPieces(plan, true))).to.deep.equal(chatCompletion(plan));
    expect(assemble(...textPieces(plan, true))).to.deep.equal(textCompletion(plan));
  });

  it("make calls of tools, refusals and probabilities as well", () => {
    const delta = (delta: object, more: object = {}): object => ({ choices: [{ index: 0, delta, ...more }] });
    const call = (index: number, more: object): object => delta({ tool_calls: [{ index, ...more }] });
    const made = assemble(
      delta({ role: "assistant", content: null }, { logprobs: { content: [{ token: "a", logprob: -1 }] } }),
      call(0, { id: "call-1", type: "function", function: { name: "add", arguments: "" } }),
      call(0, { function: { arguments: '{"a":' } }),
      call(1, { id: "call-2", type: "function", function: { name: "sub", arguments: "{}" } }),
      call(0, { id: "call-1", type: "function", function: { arguments: "1}" } }),
      delta({ role: "assistant", refusal: "no" }, { logprobs: { content: [{ token: "b", logprob: -2 }] } }),
      delta({}, { finish_reason: "tool_calls" }),
    );
    const fn = (id: string, index: number, name: string, args: string): object => ({
      index,
      id,
      type: "function",
      function: { name, arguments: args },
    });
    expect(made).to.deep.equal({
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: null,
            tool_calls: [fn("call-1", 0, "add", '{"a":1}'), fn("call-2", 1, "sub", "{}")],
            refusal: "no",
          },
          logprobs: {
            content: [
              { token: "a", logprob: -1 },
              { token: "b", logprob: -2 },
            ],
          },
          finish_reason: "tool_calls",
        },
      ],
    });
  });

  it("are whole when the stream said so, or each choice did", () => {
    const completion = new Completion();
    completion.add(
      '{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null},{"index":1,"finish_reason":"stop"}]}',
    );
    const before = completion.isWhole;
    completion.add('{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}');
    const after = completion.isWhole;
    const ended = new Completion();
    ended.add("[DONE]");
    expect([before, after, ended.isWhole, new Completion().isWhole]).to.deep.equal([
      false,
      true,
      true,
      false,
    ]);
  });

  it("count for the limit with what they make, not with what they weigh", () => {
    const body = new CompletionBody(125);
    const piece = (content: string): Buffer =>
      Buffer.from(
        `data: ${JSON.stringify({ id: "x".repeat(40), choices: [{ index: 0, delta: { content } }] })}\n\n`,
      );
    const verdicts = Array.from({ length: 50 }, () => body.write(piece("a")));
    expect(new Set(verdicts)).to.deep.equal(new Set(["more"]));
    expect(body.write(piece("a".repeat(60)))).to.equal("too_large");
  });

  const endless: Readonly<Record<string, (at: number) => object>> = {
    "choices without a text": (at) => ({ choices: [{ index: at }] }),
    "numbers in a list": (at) => ({ choices: [{ index: 0, logprobs: { values: [at] } }] }),
    "names without a text": (at) => ({ choices: [{ index: 0, delta: { [`name${at}`]: 0 } }] }),
    "fields of a choice": (at) => ({ choices: [{ index: 0, [`name${at}`]: 0 }] }),
    "a field that grows": (at) => ({ usage: "u".repeat(at) }),
  };
  for (const [what, pieceOf] of Object.entries(endless))
    it(`are too large when ${what} do not end`, () => {
      const body = new CompletionBody(1_000);
      const written = Array.from({ length: 2_000 }, (_, at) =>
        body.write(Buffer.from(`data: ${JSON.stringify(pieceOf(at))}\n\n`)),
      );
      expect(written.at(-1)).to.equal("too_large");
    });

  it("do not grow by values that take the place of others", () => {
    const body = new CompletionBody(200);
    const piece = (at: number): string =>
      JSON.stringify({ noise: "x".repeat(at % 16), choices: [{ index: 0, finish_reason: null }] });
    const written = Array.from({ length: 500 }, (_, at) => body.write(Buffer.from(`data: ${piece(at)}\n\n`)));
    expect(new Set(written)).to.deep.equal(new Set(["more"]));
  });
});

describe("server-sent events", () => {
  const TEXT = `: hello\r\nevent: x\r\ndata: {"a":\r\ndata: "ä€😀"}\r\n\r\nid: 7\ndata:b\n\n\ndata\n\ndata: lost`;

  it("are read whole, however the bytes are cut", () => {
    const bytes = Buffer.from(TEXT);
    for (let at = 0; at <= bytes.length; at++) {
      const found: string[] = [];
      const events = new EventStream(1_000, (data) => void found.push(data));
      expect([events.write(bytes.subarray(0, at)), events.write(bytes.subarray(at))]).to.deep.equal([
        true,
        true,
      ]);
      expect(found, `cut at ${at}`).to.deep.equal([`{"a":\n"ä€😀"}`, "b", ""]);
    }
  });

  it("are given up when one event exceeds the limit", () => {
    const line = new EventStream(100, () => undefined);
    const lines = new EventStream(100, () => undefined);
    const write = (events: EventStream, text: string): boolean =>
      Array.from({ length: 20 }, () => events.write(Buffer.from(text))).every(Boolean);
    expect([write(line, "data: xxxx"), write(lines, "data: xxxx\n")]).to.deep.equal([false, false]);
  });
});
