import { expect } from "chai";
import fc from "fast-check";
import { formatOf } from "../../../../src/cli/results/format.ts";
import type { FormatName } from "../../../../src/cli/results/format.ts";
import type { Result } from "../../../../src/client/results.ts";
import { MADE_WORKER, madeResult } from "../../../support/made-results.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);
const line = (format: FormatName, change: Partial<Result>, withInput = false): string =>
  formatOf(format, { withInput }).line(madeResult(1, { id: "a", ...change }));
const json = (format: FormatName, change: Partial<Result>): Record<string, unknown> =>
  JSON.parse(line(format, change)) as Record<string, unknown>;
const failed = { ok: false, output: new Uint8Array(), error: { class: "timeout", message: "took 10 s" } };

/** The cells of one record, by the rules of RFC 4180. */
function cellsOf(record: string): string[] {
  const cells: string[] = [];
  for (let rest = record.replace(/\r\n$/, ""); ;) {
    const [whole = "", quoted] = /^(?:"((?:[^"]|"")*)"|[^",\r\n]*)/.exec(rest) ?? [];
    cells.push(quoted === undefined ? whole : quoted.replaceAll('""', '"'));
    rest = rest.slice(whole.length);
    if (rest === "") return cells;
    expect(rest[0]).to.equal(",");
    rest = rest.slice(1);
  }
}

describe("a result as a line of JSON", () => {
  it("has its fields in a fixed order, and null for what is not known", () => {
    expect(line("jsonl", {})).to.equal(
      `{"item":"${"1".padStart(64, "0")}","id":"a","ok":true,"output":{"n":1},"attempt":1,"worker":"${String(MADE_WORKER)}",` +
        `"plugin_version":"1","started_at":"2026-11-03T10:00:00.001Z","duration_ms":12,"finished_at":"2026-11-03T10:00:00.013Z"}\n`,
    );
    const unknown = { id: undefined, worker: undefined, pluginVersion: undefined, startedAtMs: undefined };
    expect(json("jsonl", { ...unknown, durationMs: undefined })).to.include({
      id: null,
      worker: null,
      plugin_version: null,
      started_at: null,
      duration_ms: null,
    });
  });

  it("has class and message of a failure, and no output", () => {
    const failure = json("jsonl", failed);
    expect(failure).to.deep.include({ ok: false, error: failed.error }).and.not.have.property("output");
  });

  it("has with a failure the answer of the server that refused it, as it is", () => {
    const response = bytes('{"status_code":400,"body":1.0}');
    expect(line("jsonl", { ...failed, error: { class: "error", message: "no", response } })).to.contain(
      '"error":{"class":"error","message":"no","response":{"status_code":400,"body":1.0}},',
    );
  });

  it("takes JSON over as it is: numbers are not rounded, names not dropped, and lines are joined", () => {
    const output = ' {"n": 12345678901234567890,\r\n "n": 1e400} \n';
    expect(line("jsonl", { output: bytes(output) })).to.contain(
      `"output":{"n": 12345678901234567890,  "n": 1e400},`,
    );
  });

  for (const [what, output, field] of [
    ["text", bytes("two\nlines"), { output: "two\nlines" }],
    ["nothing", bytes(""), { output: "" }],
    ["JSON behind a byte order mark", bytes("\ufeff1"), { output: "\ufeff1" }],
    ["no UTF-8", Uint8Array.of(0xff, 0xfe), { output_base64: "//4=" }],
    ["a JSON text", bytes('"x"'), { output: "x" }],
    ["a JSON null", bytes("null"), { output: null }],
  ] as const) {
    it(`keeps an output that is ${what}`, () => expect(json("jsonl", { output })).to.deep.include(field));
  }

  it("is one line of JSON that gives back id and output, whatever they are", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (id, output) => {
        const text = line("jsonl", { id, output: bytes(JSON.stringify(output)), input: bytes(`x${output}`) });
        expect(text.indexOf("\n")).to.equal(text.length - 1);
        expect(JSON.parse(text)).to.include({ id, output });
      }),
    );
  });

  it("has the input when it is given", () => {
    expect(json("jsonl", { input: bytes("[1]") })).to.deep.include({ input: [1] });
    expect(json("jsonl", {})).to.not.have.property("input");
  });
});

describe("a result as a line of CSV", () => {
  it("has the columns of the header", () => {
    const { header } = formatOf("csv");
    expect(header).to.equal(
      "item,id,ok,output,attempt,worker,plugin_version,started_at,duration_ms,finished_at,error_class,error_message\r\n",
    );
    expect(cellsOf(line("csv", {})).length).to.equal(cellsOf(header).length);
    expect(cellsOf(line("csv", failed)).slice(-2)).to.deep.equal(["timeout", "took 10 s"]);
    expect(cellsOf(formatOf("csv", { withInput: true }).header).at(-1)).to.equal("input");
  });

  it("has beside items from inside what has made them", () => {
    const { header, line: lineOf } = formatOf("csv", { withInput: true, inside: true });
    expect(cellsOf(header).slice(-2)).to.deep.equal(["input", "origin"]);
    const none = { id: undefined, source: undefined, type: undefined };
    const origin = { kind: "mail", actor: 'order/"17"', ...none } as const;
    const cell = cellsOf(lineOf(madeResult(1, { origin }))).at(-1) ?? "";
    expect(JSON.parse(cell)).to.deep.equal({
      ...{ kind: "mail", actor: 'order/"17"', id: null, source: null, type: null },
    });
    expect(cellsOf(lineOf(madeResult(1))).at(-1)).to.equal("");
    expect(cellsOf(line("csv", { input: bytes("in") }, true)).at(-1)).to.equal("in");
  });

  for (const [what, output, cell] of [
    ["text of JSON, without its quotes", '"a \\"b\\"\\nc"', 'a "b"\nc'],
    ["an object, as JSON", '{"a":[1,"x"]}', '{"a":[1,"x"]}'],
    ["what a spreadsheet would execute, with an apostrophe", "=1+1", "'=1+1"],
    ["a formula within a JSON text, with an apostrophe", '"@SUM(A1)"', "'@SUM(A1)"],
    ["a negative number, as it is", "-5.5e3", "-5.5e3"],
    ["what only begins like a number, with an apostrophe", "-5+cmd", "'-5+cmd"],
    ["spaces around", " x ", " x "],
  ] as const) {
    it(`shows ${what}`, () => expect(cellsOf(line("csv", { output: bytes(output) }))[3]).to.equal(cell));
  }

  it("shows bytes that are no text as base64, and says so", () => {
    expect(cellsOf(line("csv", { output: Uint8Array.of(0xff) }))[3]).to.equal("base64:/w==");
  });

  it("is one record, whatever is in it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const record = line("csv", { id: text, ok: false, error: { class: "error", message: text } });
        const cells = cellsOf(record);
        expect(cells).to.have.length(12);
        expect([text, `'${text}`])
          .to.include(cells[1])
          .and.include(cells[11]);
      }),
    );
  });
});

describe("a result as the OpenAI Batch API has it", () => {
  const response =
    '{"status_code":200,"request_id":"req-1","body":{"id":"chatcmpl-1","n":12345678901234567890}}';

  it("is the response that the http backend gave", () => {
    expect(line("openai", { output: bytes(response) })).to.equal(
      `{"id":"batch_req_${"0".repeat(24)}","custom_id":"a","response":${response},"error":null,"plugin_version":"1"}\n`,
    );
  });

  it("has any other output as the body of a response, and the item for a name where the input has none", () => {
    const item = "1".padStart(64, "0");
    for (const [output, body] of [
      ['{"answer":42}', { answer: 42 }],
      ["just text", "just text"],
      ['{"status_code":200,"more":1,"body":1}', { status_code: 200, more: 1, body: 1 }],
    ] as const) {
      expect(json("openai", { id: undefined, output: bytes(output) })).to.deep.include({
        custom_id: item,
        response: { status_code: 200, request_id: item, body },
      });
    }
    expect(json("openai", { output: Uint8Array.of(0xff) })).to.have.nested.property(
      "response.body.base64",
      "/w==",
    );
  });

  it("is an error without a response, or with what the server said", () => {
    const error = { code: "timeout", message: "took 10 s" };
    expect(json("openai", failed)).to.deep.include({ response: null, error });
    const refusal = '{"status_code":400,"request_id":"r","body":{"error":{"message":"no"},"n":1.0}}';
    const refused = { class: "error", message: "400 Bad Request: no", response: bytes(refusal) };
    expect(line("openai", { ...failed, error: refused })).to.contain(`"response":${refusal},"error":null`);
    // A program's output is its own, whatever it looks like.
    const printed = { class: "error", message: refusal };
    expect(json("openai", { ...failed, error: printed })).to.deep.include({
      response: null,
      error: { code: "error", message: refusal },
    });
  });
});
