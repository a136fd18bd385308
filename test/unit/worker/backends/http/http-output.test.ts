import { expect } from "chai";
import { LIMITS } from "../../../../../src/config/limits.ts";
import type { Outcome } from "../../../../../src/worker/backends/backend.ts";
import { OpenAiServer } from "../../../../../examples/openai-server/server.ts";
import { useClosers } from "../../../../support/closers.ts";
import { chat, jsonOf, makeBackend, specOf, textOf } from "./asking.ts";
import type { Asking } from "./asking.ts";

describe("the output of the http backend", () => {
  const closing = useClosers();
  let server: OpenAiServer;
  beforeEach(async () => {
    server = await OpenAiServer.start();
    closing(() => server.close());
  });

  function make(lines: readonly string[] = [], maxOutputBytes = 1_048_576): Asking {
    const asking = makeBackend(specOf(`url = "${server.url}"`, ...lines), { maxOutputBytes });
    closing(() => asking.backend.close());
    return asking;
  }

  const behave = (behaviour: object): Record<string, unknown> => ({ behave: behaviour });
  const responseBytesOf = (outcome: Outcome): Uint8Array =>
    outcome.kind === "error" ? (outcome.response ?? Buffer.alloc(0)) : Buffer.alloc(0);
  const responseOf = (outcome: Outcome): unknown =>
    JSON.parse(Buffer.from(responseBytesOf(outcome)).toString());
  const answerTo = (text: string, words: number): string =>
    `You asked in ${words} word${words === 1 ? "" : "s"}: ${text}`;

  describe("is, of an answer,", () => {
    it("the body, byte by byte", async () => {
      const bytes = Buffer.from([0xff, 0x00, 0xc3, 0x28]);
      const { ask } = make();
      const outcome = await ask(chat("x", behave({ kind: "bytes", base64: bytes.toString("base64") })));
      expect(outcome).to.deep.equal({ kind: "success", output: bytes });
    });

    it("the message of the first choice, as JSON text", async () => {
      const { ask } = make(['output = "message"']);
      expect(textOf(await ask(chat('say "42"')))).to.equal(JSON.stringify(answerTo('say "42"', 2)));
    });

    it("what a pointer names, numbers as they are", async () => {
      const { ask } = make(['output = "/usage/total_tokens"']);
      const base64 = Buffer.from('{"usage":{"total_tokens":12345678901234567890}}').toString("base64");
      expect(textOf(await ask(chat("x", behave({ kind: "bytes", base64 }))))).to.equal(
        "12345678901234567890",
      );
    });

    it("nothing when it is not what was expected, and says what came", async () => {
      const { ask } = make(['output = "message"']);
      expect(await ask(chat("x", behave({ kind: "garbage" })))).to.deep.equal({
        kind: "error",
        message: "answered 200, but not JSON: <html>Bad day</html>",
      });
      expect(await ask({ input: "no chat" }))
        .to.have.property("message")
        .that.matches(/^the answer has nothing at \/choices/);
    });

    it("the completion that a stream makes, the same as without one", async () => {
      const plain = jsonOf(await make().ask(chat("one two three")));
      const streamed = jsonOf(await make(["stream = true"]).ask(chat("one two three")));
      expect(JSON.parse(server.requests[1]?.body ?? "")).to.include({ stream: true });
      // The id is made of the request, which says that it wants a stream.
      expect({ ...(streamed as object), id: "" }).to.deep.equal({ ...(plain as object), id: "" });
    });

    it("the completion of a stream that only the item asks for", async () => {
      const { ask } = make(['output = "message"']);
      expect(textOf(await ask(chat("hi", { stream: true })))).to.equal(`"${answerTo("hi", 1)}"`);
    });

    it("answers to other endpoints", async () => {
      expect(jsonOf(await make(['output = "/choices/0/text"']).ask({ prompt: "a b" }))).to.equal(
        answerTo("a b", 2),
      );
      const vector = jsonOf(await make(['output = "/data/0/embedding"']).ask({ input: "a" }));
      expect(vector).to.be.an("array").of.length(8);
    });
  });

  describe("with lines of an OpenAI Batch file", () => {
    const line = (body: object): object => ({
      custom_id: "r-1",
      method: "POST",
      url: "/v1/chat/completions",
      body,
    });

    it("gives what stands under `response` in the output file", async () => {
      const { ask } = make(['output = "message"']);
      const {
        status_code: status,
        request_id: id,
        body,
      } = jsonOf(await ask(line(chat("a")))) as Record<string, unknown>;
      expect([status, id, body]).to.deep.equal([200, `req-${(body as { id: string }).id}`, body]);
      expect(body).to.have.nested.property("choices[0].message.content", answerTo("a", 1));
    });

    it("gives what stands there in the error file beside the message of the error", async () => {
      const refusal = { kind: "status", status: 400, message: "too long", code: "context_length_exceeded" };
      const outcome = await make().ask(line(chat("a", behave(refusal))));
      expect(outcome).to.include({
        ...{ kind: "error", message: "400 Bad Request: too long", isPermanent: true },
      });
      expect(responseOf(outcome)).to.deep.equal({
        status_code: 400,
        request_id: "req-0",
        body: {
          error: {
            message: "too long",
            type: "invalid_request_error",
            param: null,
            code: "context_length_exceeded",
          },
        },
      });
    });

    it("gives JSON also for a refusal that is none, or a long one", async () => {
      for (const body of ["<html>", `"${"\u0001\\n".repeat(50_000)}"`]) {
        const outcome = await make().ask(line(chat("a", behave({ kind: "status", status: 413, body }))));
        expect(responseOf(outcome)).to.have.nested.property("body.error.message").that.is.a("string");
        expect(responseBytesOf(outcome).length).to.be.below(LIMITS.responseBytes);
      }
    });

    it("does not read a large refusal: neither its own JSON nor its words, but its start", async () => {
      const refusal = (bytes: number): string =>
        JSON.stringify({ error: { message: "too long" }, rest: "r".repeat(bytes) });
      const to = (body: string): Promise<Outcome> =>
        make().ask(line(chat("a", behave({ kind: "status", status: 413, body }))));
      const small = refusal(10);
      expect(responseOf(await to(small))).to.have.deep.property("body", JSON.parse(small));
      const middle = refusal(LIMITS.responseBytes / 2);
      expect(await to(middle)).to.have.property("message", "413 Payload Too Large: too long");
      const large = refusal(LIMITS.responseBytes);
      for (const [body, outcome] of [
        [middle, await to(middle)],
        [large, await to(large)],
      ] as const) {
        expect(responseOf(outcome)).to.have.deep.property("body", { error: { message: body.slice(0, 500) } });
      }
      expect(await to(large)).to.have.property("message", `413 Payload Too Large: ${large.slice(0, 2_000)}…`);
    });

    it("gives the same of a refusal of any other item", async () => {
      const outcome = await make().ask(chat("a", behave({ kind: "status", status: 404, body: '{"n":1.0}' })));
      expect(Buffer.from(responseBytesOf(outcome)).toString()).to.equal(
        '{"status_code":404,"request_id":null,"body":{"n":1.0}}',
      );
    });

    it("does not take anything but JSON for an answer", async () => {
      expect(await make().ask(line(chat("a", behave({ kind: "garbage" }))))).to.deep.equal({
        kind: "error",
        message: "answered 200, but not JSON: <html>Bad day</html>",
      });
    });
  });

  it("is too large by what is taken, not by what came", async () => {
    const size = JSON.stringify(answerTo("a", 1)).length;
    expect((await make(['output = "message"'], size).ask(chat("a"))).kind).to.equal("success");
    expect(await make(['output = "message"'], size - 1).ask(chat("a"))).to.deep.equal({ kind: "too_large" });
  });
});
