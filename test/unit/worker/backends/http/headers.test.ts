import { expect } from "chai";
import { fillHeaders, withoutSecrets } from "../../../../../src/worker/backends/http/headers.ts";

describe("the headers of a manifest", () => {
  it("take variables out of the environment, which are secrets then", () => {
    const filled = fillHeaders(
      { Authorization: "Bearer ${TOKEN}", "X-Team": "red", "X-Both": "${A}-${TOKEN}" },
      { TOKEN: "sk-123456\n", A: "short" },
    );
    expect(filled).to.deep.equal({
      kind: "filled",
      headers: {
        fields: { authorization: "Bearer sk-123456", "x-team": "red", "x-both": "short-sk-123456" },
        secrets: ["sk-123456", "short"],
      },
    });
  });

  it("are refused when a variable is missing, by its name", () => {
    expect(fillHeaders({ Authorization: "Bearer ${TOKEN}" }, { OTHER: "secret" })).to.deep.equal({
      kind: "refused",
      reason: "the header Authorization needs the environment variable TOKEN, which is not set",
    });
  });

  it("are refused when the environment has something else than a line, without showing it", () => {
    for (const TOKEN of ["two\nlines", "snow\u2603man"])
      expect(fillHeaders({ a: "${TOKEN}" }, { TOKEN })).to.deep.equal({
        kind: "refused",
        reason: "what the environment gives for the header a is not a text of one line",
      });
  });

  it("leave no secret in a text", () => {
    const secrets = ["sk-123456-more", "sk-123456"];
    expect(withoutSecrets("wrong key: sk-123456-more or sk-123456, sk-123456", secrets)).to.equal(
      "wrong key: [redacted] or [redacted], [redacted]",
    );
  });

  it("leave no short one either, where the text speaks of keys, and change no other words", () => {
    for (const [text, shown] of [
      ["Incorrect API key provided: k1.", "Incorrect API key provided: [redacted]."],
      ['{"authorization":"Bearer k1"}', '{"authorization":"Bearer [redacted]"}'],
      ["AUTHORIZATION: Basic k1", "AUTHORIZATION: Basic [redacted]"],
      ["unknown tokens k1 and k1", "unknown tokens [redacted] and [redacted]"],
      ["the disk k1 is full; at k1", "the disk k1 is full; at k1"],
      ["wrong key: k12, sk1, k1-a", "wrong key: k12, sk1, k1-a"],
      ["bad key\nhost k1", "bad key\nhost k1"],
      ["the keyboard k1", "the keyboard k1"],
    ] as const)
      expect(withoutSecrets(text, ["k1"]), text).to.equal(shown);
    expect(withoutSecrets("token a.b (aXb)", ["a.b"]), "as it is written").to.equal("token [redacted] (aXb)");
  });
});
