import { expect } from "chai";
import { pathOfUrl } from "../../../../../src/config/http-rules.ts";
import { requestOf } from "../../../../../src/worker/backends/http/request.ts";
import type { ItemRequest } from "../../../../../src/worker/backends/http/request.ts";
import { chat, specOf } from "./asking.ts";

const URL_LINE = 'url = "http://127.0.0.1:8000/v1"';

function make(payload: unknown, ...lines: readonly string[]): ItemRequest | string {
  const spec = specOf(...(lines.some((line) => line.startsWith("url")) ? [] : [URL_LINE]), ...lines);
  const bytes = typeof payload === "string" ? Buffer.from(payload) : payload;
  const made = requestOf(
    spec,
    pathOfUrl(spec.url),
    bytes instanceof Uint8Array ? bytes : Buffer.from(JSON.stringify(payload)),
  );
  return made.kind === "request" ? made.request : made.reason;
}

function bodyOf(payload: unknown, ...lines: readonly string[]): string {
  const request = make(payload, ...lines);
  return typeof request === "string" ? request : Buffer.from(request.body ?? []).toString();
}

function pathOf(payload: unknown, ...lines: readonly string[]): string {
  const request = make(payload, ...lines);
  return typeof request === "string" ? request : request.path;
}

describe("the request of an item", () => {
  it("has the item's own bytes for a body", () => {
    const payload = '{ "messages": [],  "seed": 12345678901234567890 }';
    const { method, contentType } = make(payload) as ItemRequest;
    expect([bodyOf(payload), method, contentType]).to.deep.equal([payload, "POST", "application/json"]);
  });

  it("goes to the endpoint that fits the body, below an address that ends in /v1", () => {
    const url = 'url = "http://h/openai/v1/"';
    expect([
      pathOf({ messages: [] }),
      pathOf({ prompt: "" }),
      pathOf({ input: "" }),
      pathOf({ x: 1 }),
    ]).to.deep.equal(["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1"]);
    expect(pathOf({ messages: [] }, url)).to.equal("/openai/v1/chat/completions");
  });

  it("goes to any other address as it is", () => {
    expect(pathOf({ messages: [], input: 1 }, 'url = "http://h/predict"')).to.equal("/predict");
    expect(pathOf("text", 'url = "http://h"')).to.equal("/");
  });

  it("goes to the path of the manifest, with fields of the item in it", () => {
    const path = 'path = "/users/{.user.name}/{.id}?q={.q}"';
    const item = { user: { name: "../ä b" }, id: 7, q: "a&b=c" };
    expect(pathOf(item, 'url = "http://h/api"', path)).to.equal("/api/users/..%2F%C3%A4%20b/7?q=a%26b%3Dc");
    expect(pathOf({ id: 7 }, path)).to.equal("it has no field user.name, which the request needs");
  });

  it("gets what the manifest adds: fields that it lacks, another model, a stream", () => {
    const lines = ['model = "mine"', "parameters = { temperature = 0, max_tokens = 5 }"];
    expect(JSON.parse(bodyOf(chat("x", { model: "theirs", max_tokens: 9 }), ...lines))).to.deep.equal({
      ...chat("x"),
      model: "mine",
      temperature: 0,
      max_tokens: 9,
    });
    expect(JSON.parse(bodyOf({ prompt: "x" }, "stream = true"))).to.deep.equal({
      prompt: "x",
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("keeps numbers as they are when something is added", () => {
    const payload = '{"prompt":"x","seed":12345678901234567890,"top_p":1.0,"logit_bias":{"1":-0,"2":1e400}}';
    expect(bodyOf(payload, 'model = "m"')).to.equal(
      '{"prompt":"x","seed":12345678901234567890,"top_p":1.0,"logit_bias":{"1":-0,"2":1e400},"model":"m"}',
    );
  });

  it("can be made by a template, of JSON and of text", () => {
    const body =
      'body = { messages = [{ role = "user", content = "Sum up: {.text}" }], id = "{.id}", all = "{}" }';
    expect(bodyOf('{"text":"a \\"b\\"","id":12345678901234567890}', body)).to.equal(
      '{"messages":[{"role":"user","content":"Sum up: a \\"b\\""}],"id":12345678901234567890,"all":{"text":"a \\"b\\"","id":12345678901234567890}}',
    );
    const content = 'body = { messages = [{ role = "user", content = "{}" }], stop = ["{.", "{x}"] }';
    const message = (text: unknown): unknown => ({
      messages: [{ role: "user", content: text }],
      stop: ["{.", "{x}"],
    });
    expect(JSON.parse(bodyOf("not JSON: ä", content))).to.deep.equal(message("not JSON: ä"));
    expect(JSON.parse(bodyOf('"a JSON text"', content))).to.deep.equal(message("a JSON text"));
    expect(pathOf("text", content)).to.equal("/v1/chat/completions");
    expect(bodyOf({ other: 1 }, 'body = { prompt = "{.text}" }')).to.equal(
      "it has no field text, which the request needs",
    );
  });

  it("does not put the item's braces through the template again", () => {
    expect(bodyOf({ a: "{.b}", b: "{.a}" }, 'body = { prompt = "{.a} {.b}" }')).to.equal(
      '{"prompt":"{.b} {.a}"}',
    );
  });

  it("carries bytes that are no text as they are", () => {
    const bytes = Uint8Array.of(0xff, 0xfe, 0);
    const { body, contentType } = make(bytes, 'url = "http://h/x"') as ItemRequest;
    expect([[...(body ?? [])], contentType]).to.deep.equal([[0xff, 0xfe, 0], "text/plain; charset=utf-8"]);
  });

  it("has no body when the method has none", () => {
    const { body, method, path } = make({ id: 3 }, 'method = "GET"', 'path = "/things/{.id}"') as ItemRequest;
    expect([body, method, path]).to.deep.equal([undefined, "GET", "/v1/things/3"]);
  });
});

describe("a line of an OpenAI Batch file", () => {
  const line = (more: object = {}): Record<string, unknown> => ({
    custom_id: "request-1",
    method: "POST",
    url: "/v1/chat/completions",
    body: chat("x", { model: "gpt" }),
    ...more,
  });

  it("is sent to its own path with its own body", () => {
    const { isBatch, method, path } = make(line()) as ItemRequest;
    expect([isBatch, method, path, JSON.parse(bodyOf(line()))]).to.deep.equal([
      true,
      "POST",
      "/v1/chat/completions",
      chat("x", { model: "gpt" }),
    ]);
  });

  it("finds its path wherever the server's API begins", () => {
    const at = (url: string): string => pathOf(line(), `url = "${url}"`);
    expect([at("http://h"), at("http://h/v1"), at("http://h/v1/"), at("http://h/openai/v1")]).to.deep.equal([
      "/v1/chat/completions",
      "/v1/chat/completions",
      "/v1/chat/completions",
      "/openai/v1/chat/completions",
    ]);
    expect([at("http://h/proxy"), at("http://h/v1/chat/completions")]).to.deep.equal([
      "/proxy/v1/chat/completions",
      "/v1/chat/completions",
    ]);
  });

  it("is executed by the model of the manifest, when it names one", () => {
    expect(JSON.parse(bodyOf(line(), 'model = "mine"'))).to.deep.equal(chat("x", { model: "mine" }));
  });

  it("gets no fields that it lacks, and a stream only where there are streams", () => {
    const lines = ["parameters = { temperature = 0 }", "stream = true"];
    const embeddings = line({ url: "/v1/embeddings", body: { input: "x" } });
    expect(JSON.parse(bodyOf(embeddings, ...lines))).to.deep.equal({ input: "x" });
    expect(JSON.parse(bodyOf(line(), ...lines))).to.deep.equal({
      ...chat("x", { model: "gpt" }),
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("keeps the numbers of its body", () => {
    const payload =
      '{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"seed":12345678901234567890}}';
    expect(bodyOf(payload)).to.equal('{"seed":12345678901234567890}');
  });

  it("is one only with exactly its keys, of their types", () => {
    const others = [
      line({ more: 1 }),
      line({ body: "x" }),
      line({ custom_id: 1 }),
      line({ url: "http://other/v1" }),
    ];
    const less = { method: "POST", url: "/v1/completions", body: {} };
    for (const other of [...others, line({ url: "//other/v1" }), less]) {
      expect((make(other) as ItemRequest).isBatch, JSON.stringify(other)).to.equal(false);
      expect(make(other, 'format = "openai-batch"')).to.match(/^it is not a line of an OpenAI Batch file/);
    }
  });

  it("is an item like others when the manifest says so", () => {
    expect((make(line(), 'format = "plain"') as ItemRequest).isBatch).to.equal(false);
    expect(bodyOf(line(), 'body = { prompt = "{.custom_id}" }')).to.equal('{"prompt":"request-1"}');
  });

  it("is refused with any method but POST", () => {
    expect(make(line({ method: "GET" }))).to.equal("a Batch request has the method POST, and not GET");
  });
});
