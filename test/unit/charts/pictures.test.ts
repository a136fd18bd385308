// Drawings of a chart, by whatever names its author chose: well-formed, complete, and the same each time.
import { expect } from "chai";
import fc from "fast-check";
import { createMachine } from "xstate";
import { chartMermaid } from "../../../src/charts/mermaid.ts";
import type { ChartModel } from "../../../src/charts/model.ts";
import { ownMachines } from "../../../src/charts/named-machine.ts";
import { readMachine } from "../../../src/charts/read-machine.ts";
import { CHART_STYLE, chartSvg, MAX_DRAWN } from "../../../src/charts/svg.ts";
import { rejectionOf } from "../../support/rejection.ts";
import { everyKind } from "./every-kind-chart.ts";
import { hostileText } from "./hostile-text.ts";

const ELEMENTS = ["circle", "g", "path", "rect", "style", "svg", "text", "title"];
const ATTRIBUTES = [
  ...[
    "class",
    "cx",
    "cy",
    "d",
    "data-of",
    "data-path",
    "data-source",
    "data-state",
    "data-target",
    "data-transition",
  ],
  ...["height", "r", "role", "rx", "viewBox", "width", "x", "xmlns", "y"],
];

interface Element {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
}

/** Throws unless it is XML of elements with quoted attributes, and text. */
function elementsOf(whole: string): Element[] {
  const svg = whole.replace(CHART_STYLE, "");
  const found: Element[] = [];
  const open: string[] = [];
  expect(held(svg)).to.equal(svg);
  let at = 0;
  const token =
    /<\/([a-z]+)>|<([a-z]+)((?: [a-zA-Z-]+="[^<>"]*")*)(\/?)>|((?:[^<>&]|&(?:lt|gt|amp|quot|#39);)+)/gy;
  for (let match = token.exec(svg); match !== null; match = token.exec(svg)) {
    at = token.lastIndex;
    const [, closed, opened, attributes = "", isEmpty] = match;
    if (closed !== undefined) expect(open.pop()).to.equal(closed);
    if (opened === undefined) continue;
    if (isEmpty === "") open.push(opened);
    const pairs = [...attributes.matchAll(/ ([a-zA-Z-]+)="([^"]*)"/g)];
    found.push({
      name: opened,
      attributes: new Map(pairs.map(([, name = "", value = ""]) => [name, unescaped(value)])),
    });
  }
  expect(svg.slice(at, at + 80)).to.equal("");
  expect(open).to.deep.equal([]);
  return found;
}

function unescaped(text: string): string {
  const characters: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'" };
  return text.replace(/&([a-z]+|#39);/g, (_, name: string) => characters[name] ?? "?");
}

function valuesOf(elements: readonly Element[], attribute: string): string[] {
  return elements.flatMap(({ attributes }) => attributes.get(attribute) ?? []);
}

/** As XML can hold it. */
function held(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\t\n\u{20}-\u{7e}\u{a0}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\u{fffd}");
}

const MODELS: readonly (readonly [string, ChartModel])[] = [
  ...ownMachines().map(({ name, model }) => [name, model] as const),
  ["every kind", readMachine(everyKind)],
];

/** A machine whose every name is one of these. */
function machineOf([id = "", one = "", two = "", event = "", guard = ""]: readonly string[]): ChartModel {
  const [first, second] = [`1${one}`, `2${two}`];
  const machine = createMachine({
    ...{ id: `m${id}`, version: guard, description: event, initial: first },
    on: { [`e${event}`]: { actions: guard } },
    states: {
      [first]: {
        id: "first",
        entry: event,
        on: { [`f${event}`]: { guard: `g${guard}`, target: "#second" } },
      },
      [second]: { id: "second", invoke: { src: guard, id: `i${event}` }, after: { [`d${one}`]: "#first" } },
    },
  });
  return readMachine(machine);
}

const hostileModel = fc.array(hostileText, { minLength: 5, maxLength: 5 }).map(machineOf);

describe("the SVG of a chart", () => {
  for (const [name, model] of MODELS) {
    it(`${name}: has each state, and each transition where it can be lit`, async () => {
      const elements = elementsOf(await chartSvg(model, { isAlone: true }));
      expect(valuesOf(elements, "data-state")).to.have.members(model.states.map(({ id }) => id));
      expect(valuesOf(elements, "data-path")).to.have.members(model.states.map(({ path }) => path));
      expect(new Set(valuesOf(elements, "data-transition"))).to.deep.equal(
        new Set(model.transitions.map(({ id }) => id)),
      );
    });
  }

  it("is the same each time, to the byte", async () => {
    const model = readMachine(everyKind);
    const [first, second] = [
      await chartSvg(model, { isAlone: true }),
      await chartSvg(model, { isAlone: true }),
    ];
    expect(second).to.equal(first);
  });

  it("brings its style only where it stands alone", async () => {
    const model = readMachine(everyKind);
    const names = elementsOf(await chartSvg(model, { isAlone: false })).map(({ name }) => name);
    expect(names).to.not.include("style");
    expect(elementsOf(await chartSvg(model, { isAlone: true })).map(({ name }) => name)).to.include("style");
  });

  it("is well-formed by whatever names, and these come back whole", async () => {
    const check = async (model: ChartModel): Promise<void> => {
      const elements = elementsOf(await chartSvg(model, { isAlone: true }));
      expect(ELEMENTS).to.include.members(elements.map(({ name }) => name));
      expect(ATTRIBUTES).to.include.members(elements.flatMap(({ attributes }) => [...attributes.keys()]));
      expect(valuesOf(elements, "data-state")).to.have.members(model.states.map(({ id }) => held(id)));
    };
    await fc.assert(fc.asyncProperty(hostileModel, check), { numRuns: 30 });
  });

  it("is refused, with its size, for a chart that is too large to read", async () => {
    const states = Object.fromEntries(Array.from({ length: MAX_DRAWN }, (_, at) => [`s${at}`, {}]));
    const model = readMachine(createMachine({ id: "large", initial: "s0", states }));
    const error = await rejectionOf(chartSvg(model, { isAlone: true }));
    expect(String(error)).to.contain(`${MAX_DRAWN + 1} states and transitions`);
  });
});

describe("the Mermaid diagram of a chart", () => {
  const LINE =
    /^(?:stateDiagram-v2| *(?:--|\}|\w+|state \w+ \{|state "[^"\n<>;]*" as \w+(?: \{)?|(?:\[\*\]|\w+) --> (?:\[\*\]|\w+)(?:: [^\n<>;:"{}\\]*)?))$/;

  function expectReadable(model: ChartModel): void {
    const text = chartMermaid(model);
    for (const line of text.trimEnd().split("\n")) expect(line.replaceAll(/#\d+;/g, ""), text).to.match(LINE);
    const declared = [...text.matchAll(/ as (\w+)/g)].map(([, name]) => name);
    expect(new Set(declared).size).to.equal(declared.length);
  }

  for (const [name, model] of MODELS)
    it(`${name}: has no line that Mermaid reads as something else`, () => expectReadable(model));

  it("has no such line for any names", () => {
    fc.assert(fc.property(hostileModel, expectReadable), { numRuns: 200 });
  });
});
