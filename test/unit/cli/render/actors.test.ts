import { expect } from "chai";
import { dueText, historyText, timersText, waitSentences } from "../../../../src/cli/render/actors.ts";
import type { AskedLine } from "../../../../src/cli/render/actors.ts";
import { hintedLine } from "../../../../src/cli/shell-words.ts";

const NOTHING: AskedLine = {
  ...{ timers: [], invocations: [], children: [], actions: undefined, actionsError: undefined },
  ...{ retiresAtMs: undefined, parent: undefined },
};
const NOW_MS = 1_000_000;

function sentences(asks: Partial<AskedLine>): string[] {
  return waitSentences("order/1", { ...NOTHING, ...asks }, hintedLine(undefined), NOW_MS);
}

describe("what an actor waits for", () => {
  it("is said by its timers, the next one first, what it has invoked, and its children", () => {
    expect(
      sentences({
        timers: [
          { id: "late", dueAtMs: NOW_MS + 29 * 86_400_000 },
          { id: "soon", dueAtMs: NOW_MS + 185_000 },
        ],
        invocations: [{ id: "charge", source: "bank", item: "ab".repeat(32) }],
        children: ["order/1/packing"],
        parent: "shop/7",
      }),
    ).to.deep.equal([
      "It waits for timer soon, due in 3m 05s.",
      "It waits for timer late, due in 29d 0h.",
      "It waits for bank, which it has invoked as charge: `rollout explain abababababab` says how that is.",
      "It has started order/1/packing: `rollout actor get order/1/packing`",
      "shop/7 has started it.",
    ]);
    expect(sentences({ invocations: [{ id: "charge", source: "bank", item: "" }] })).to.deep.equal([
      "bank, which it has invoked as charge, has ended: that waits in its mail.",
    ]);
    expect(sentences({})).to.deep.equal([]);
  });

  it("is said of named actions, with what helps where one has failed", () => {
    expect(sentences({ actions: 2 })).to.deep.equal(["2 named actions of it are not done."]);
    const actionsError = { class: "error", message: "no mail server" };
    expect(sentences({ actions: 1, actionsError })).to.deep.equal([
      "A named action of it has failed (error: no mail server), and 1 named action waits behind it: `rollout retry --failed` tries it " +
        "again, `rollout actor skip order/1` goes on without it.",
    ]);
  });

  it("is described for a final actor, until it is forgotten", () => {
    expect(sentences({ retiresAtMs: NOW_MS + 60_000 })).to.deep.equal([
      "It is final, and is forgotten in 1m 00s.",
    ]);
  });

  it("is described when it waits for nothing", () => {
    expect(timersText("order/1", [], NOW_MS)).to.equal("Actor order/1 waits for no timer.\n");
    expect(historyText("order/1", [], NOW_MS)).to.equal("No event of actor order/1 has succeeded yet.\n");
    expect(dueText(NOW_MS - 5, NOW_MS)).to.equal("now");
  });
});
