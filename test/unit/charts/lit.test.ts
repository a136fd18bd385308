import { expect } from "chai";
import { createMachine } from "xstate";
import { litStates } from "../../../src/charts/lit.ts";
import { chartMermaid } from "../../../src/charts/mermaid.ts";
import { readMachine } from "../../../src/charts/read-machine.ts";
import { chartSvg } from "../../../src/charts/svg.ts";

const model = readMachine(
  createMachine({
    id: "m",
    type: "parallel",
    states: {
      light: { initial: "off", states: { off: {}, on: { initial: "dim", states: { dim: {}, full: {} } } } },
      door: { initial: "shut", states: { shut: {}, open: {} } },
    },
  }),
);

describe("the states that are lit", () => {
  it("are those of the value, in each region, with those around them", () => {
    expect([...litStates(model, { light: { on: "full" }, door: "shut" })]).to.deep.equal([
      ...["m.light", "m.light.on", "m.light.on.full", "m.door", "m.door.shut"],
    ]);
  });

  it("are none where the chart lacks the state", () => {
    for (const value of ["gone", { light: "gone" }, null, 7, undefined])
      expect([...litStates(model, value)].filter((id) => id !== "m.light")).to.deep.equal([]);
  });

  it("are marked in the diagram and in the picture, and without them both are unchanged", async () => {
    const lit = litStates(model, { light: "off", door: "open" });
    expect(chartMermaid(model, lit)).to.match(/class light,light_off,door,door_open lit\n$/);
    expect(chartMermaid(model)).to.not.include("lit");
    const svg = await chartSvg(model, { isAlone: true, lit });
    expect(svg.match(/ lit" data-state="/g)).to.have.length(4);
    expect(await chartSvg(model, { isAlone: true })).to.not.include(' lit"');
  });
});
