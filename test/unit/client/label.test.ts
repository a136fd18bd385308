import { expect } from "chai";
import { labelOf } from "../../../src/client/submit.ts";

const LABELS: readonly [line: string, label: string][] = [
  [`{"id":"a-17"}`, "a-17"],
  [`{"n":1,"custom_id":"request-3","method":"POST"}`, "request-3"],
  [`{"custom_id":"b","id":"a"}`, "a"],
  [`{"id":17}`, "17"],
  [`{"id":12345678901234567890}`, "12345678901234567890"],
  [`{"id":1.50}`, "1.50"],
  [`{"id":null,"custom_id":"b"}`, "b"],
  [`{"id":{"id":"inner"}}`, ""],
  [`{"item":{"id":"inner"}}`, ""],
  [`["id"]`, ""],
  [`"id"`, ""],
  [`{"text":"an \\"id\\""}`, ""],
  [`{"id": broken`, ""],
  [`{"id":true}`, ""],
  [`{"__proto__":{"id":"inherited"}}`, ""],
  [`{"id":"${"é".repeat(128)}"}`, "é".repeat(128)],
  [`{"id":"${"é".repeat(129)}"}`, ""],
];

describe("how an input names its items itself", () => {
  for (const [line, label] of LABELS) {
    it(`is ${label === "" ? "not said" : label.slice(0, 24)} in ${line.slice(0, 48)}`, () => {
      expect(labelOf(Buffer.from(line))).to.equal(label);
    });
  }
});
