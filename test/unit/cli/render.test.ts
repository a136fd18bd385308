import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import { counted, renderAge } from "../../../src/cli/render/quantities.ts";
import { errorLine, errorObject } from "../../../src/cli/render/error.ts";
import { renderTable } from "../../../src/cli/render/table.ts";

describe("a table", () => {
  const columns = [
    { title: "worker", value: (row: { name: string; slots: number }) => row.name },
    {
      title: "slots",
      value: (row: { name: string; slots: number }) => `${row.slots}`,
      align: "right" as const,
    },
    { title: "note", value: () => "" },
  ];

  it("has aligned columns and no spaces at the end of lines", () => {
    const rows = [
      { name: "W1", slots: 4 },
      { name: "a-longer-one", slots: 128 },
    ];
    expect(renderTable(columns, rows)).to.equal(
      "WORKER        SLOTS  NOTE\nW1                4\na-longer-one    128\n",
    );
  });

  it("has its titles when it has no rows", () => {
    expect(renderTable(columns, [])).to.equal("WORKER  SLOTS  NOTE\n");
  });

  it("shows control characters and obeys none", () => {
    expect(renderTable(columns, [{ name: "a\u001b[2J\n", slots: 1 }])).to.contain("a\\u001b[2J\\n");
  });
});

describe("an age", () => {
  for (const [ageMs, text] of [
    [-5, "now"],
    [0, "now"],
    [999, "now"],
    [1_000, "1s ago"],
    [59_999, "59s ago"],
    [60_000, "1m ago"],
    [3_599_999, "59m ago"],
    [3_600_000, "1h ago"],
    [86_400_000, "1d ago"],
    [864_000_000, "10d ago"],
  ] as const) {
    it(`of ${ageMs} ms is "${text}"`, () => expect(renderAge(ageMs)).to.equal(text));
  }
});

describe("an error", () => {
  const error = failure("listen_failed", {
    ...{ address: "a:1", setting: "transport.listen_addr" },
    reason: "postgres://me:hidden@host\u001b[2J\nis in use",
  });

  it("is one line, coloured for a terminal", () => {
    expect(errorLine(error, false)).to.equal(
      "error: cannot listen on a:1: postgres://me:[redacted]@host\\u001b[2J is in use " +
        "(set transport.listen_addr to a free address of this machine)",
    );
    expect(errorLine(error, true)).to.match(/^\u001b\[31merror:\u001b\[0m cannot listen/);
  });

  it("names commands about the configuration that the user has named", () => {
    const unknown = failure("store_corrupt", { path: "db", key: "k", reason: "r" });
    const hint = /`rollout doctor -c 'my cluster'` says .*, `rollout results -c 'my cluster'` exports/;
    expect(errorLine(unknown, false, "my cluster")).to.match(hint);
    expect(errorObject(unknown, "my cluster")).to.have.nested.property("error.hint").that.match(hint);
    expect(errorLine(unknown, false))
      .to.contain("`rollout doctor` says")
      .and.contain("`rollout results` exp");
  });

  it("shows a program the same words", () => {
    expect(errorObject(error)).to.have.nested.property("error.message").that.contains("[redacted]");
  });
});

describe("a number of things", () => {
  it("is one of one, and several of none and of more", () => {
    const texts = [0, 1, 1_234].map((count) => counted(count, "key"));
    expect(texts).to.deep.equal(["0 keys", "1 key", "1,234 keys"]);
    expect(counted(2, "line equals", "lines equal")).to.equal("2 lines equal");
  });
});
