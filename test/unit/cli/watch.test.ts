import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import { watch } from "../../../src/cli/watch.ts";
import type { Watched } from "../../../src/cli/watch.ts";

describe("what is watched where there is no terminal", () => {
  const printed: string[] = [];
  const said: string[] = [];
  beforeEach(() => {
    printed.length = 0;
    said.length = 0;
  });

  function watched(looks: readonly (number | Error)[]): Watched<number> {
    const left = [...looks];
    return {
      look: async () => {
        const next = left.shift() ?? 0;
        if (next instanceof Error) throw next;
        return next;
      },
      textOf: (seen) => `${seen} left`,
      keyOf: String,
      isOver: (seen) => seen === 0,
      print: (_, text, isFirst) => void printed.push(isFirst ? `first: ${text}` : text),
      tell: (sentence) => void said.push(sentence),
      isForPrograms: true,
    };
  }

  it("is printed when it has changed, and the watch ends when the run is over", async () => {
    expect(await watch(watched([2, 2, 1, 0]), new AbortController().signal)).to.equal(0);
    expect([printed, said]).to.deep.equal([["first: 2 left", "1 left", "0 left"], []]);
  });

  it("is waited for while it cannot be read", async () => {
    const gone = failure("coordinator_silent", { address: "127.0.0.1:1" });
    expect(await watch(watched([1, gone, 0]), new AbortController().signal)).to.equal(0);
    expect(printed).to.deep.equal(["first: 1 left", "0 left"]);
    expect(said.at(-1)).to.equal("The coordinator answers again.");
  });

  it("ends with the signal", async () => {
    const stop = new AbortController();
    const endless = { ...watched([]), look: () => Promise.resolve(stop.abort()).then(() => 1) };
    expect(await watch(endless, stop.signal)).to.equal(undefined);
    expect(printed).to.deep.equal(["first: 1 left"]);
  });
});
