import { expect } from "chai";
import { RolloutError } from "../../../src/base/errors.ts";
import { parseRelease, releaseOfFlags } from "../../../src/config/release-file.ts";
import type { ReleaseFlags, ReleaseOrder } from "../../../src/config/release-file.ts";

const FILE = "/releases/better.toml";
const CANDIDATE = `[release]\nplugin = "v2.toml"\n`;
const ERRORS = { kind: "errors", maxWorse: 0.01 };

function itemStage(share: number, more: object = {}): object {
  return { kind: "items", share, minItems: 100, minTimeMs: 10_000, maxItems: undefined, ...more };
}

function refusalOf(order: () => ReleaseOrder): { code: string; message: string; hint: string } {
  try {
    order();
  } catch (error) {
    if (error instanceof RolloutError) return { code: error.code, message: error.message, hint: error.hint };
    throw error;
  }
  throw new Error("it was accepted");
}

function flags(given: Partial<ReleaseFlags>): ReleaseFlags {
  return { plugin: "v2.toml", stages: undefined, maxWorse: undefined, ...given };
}

describe("a release's file", () => {
  it("need not say more than the candidate", () => {
    expect(parseRelease(FILE, CANDIDATE, undefined)).to.deep.equal({
      manifestFile: "/releases/v2.toml",
      spec: {
        alpha: 0.05,
        onBreach: "rollback",
        stages: [itemStage(0.01), itemStage(0.1), itemStage(0.5), itemStage(1)],
        metrics: [ERRORS],
      },
    });
    expect(parseRelease(FILE, "", "/elsewhere/v3.toml").manifestFile).to.equal("/elsewhere/v3.toml");
  });

  it("may set every key", () => {
    const { spec } = parseRelease(
      FILE,
      `[release]
plugin = "v2.toml"
alpha = 0.01
on_breach = "hold"

[[stage]]
items = "2.5%"
min_items = 50
min_time = "1m"
max_items = 400

[[stage]]
items = "30%"

[[metric]]
kind = "slower"
than = "2s"
max_worse = "5%"

[[metric]]
kind = "number"
pointer = "/judge/score"
range = [0, 10]
max_worse = 0.2

[[metric]]
kind = "number"
name = "words"
pointer = "/words"
better = "lower"

[[metric]]
kind = "errors"
max_worse = 0.02
`,
      undefined,
    );
    expect([spec.alpha, spec.onBreach]).to.deep.equal([0.01, "hold"]);
    expect(spec.stages).to.deep.equal([
      itemStage(0.025, { minItems: 50, minTimeMs: 60_000, maxItems: 400 }),
      itemStage(0.3),
      itemStage(1),
    ]);
    expect(spec.metrics).to.deep.equal([
      { kind: "slower", thanMs: 2_000, maxWorse: 0.05 },
      {
        kind: "number",
        name: "score",
        pointer: "/judge/score",
        low: 0,
        high: 10,
        better: "higher",
        maxWorse: 0.2,
      },
      { kind: "number", name: "words", pointer: "/words", low: 0, high: 1, better: "lower", maxWorse: 0.01 },
      { kind: "errors", maxWorse: 0.02 },
    ]);
  });

  it("has stages of workers, with all items as the last", () => {
    const { spec } = parseRelease(
      FILE,
      `${CANDIDATE}[[stage]]\nworkers = 1\n[[stage]]\nworkers = 4\n`,
      undefined,
    );
    expect(spec.stages).to.deep.equal([
      { kind: "workers", workers: 1, minItems: 100, minTimeMs: 10_000, maxItems: undefined },
      { kind: "workers", workers: 4, minItems: 100, minTimeMs: 10_000, maxItems: undefined },
      itemStage(1),
    ]);
  });

  it("keeps all items as the last stage where they are written, with what is demanded there", () => {
    const stages = `[[stage]]\nitems = "50%"\n[[stage]]\nitems = "100%"\nmin_time = "0ms"\n`;
    expect(parseRelease(FILE, CANDIDATE + stages, undefined).spec.stages).to.deep.equal([
      itemStage(0.5),
      itemStage(1, { minTimeMs: 0 }),
    ]);
  });

  const INVALID = "config_invalid_value";
  const REFUSED: readonly [what: string, text: string, code: string, message: string, hint: string][] = [
    ["no TOML", `[release]\nplugin "v2"`, "config_syntax", `${FILE}:2:`, "correct that line"],
    ["no candidate", "", "config_missing_key", `${FILE}: release.plugin is not set`, "--plugin MANIFEST"],
    [
      "a mistyped key",
      `${CANDIDATE}on_breech = "hold"`,
      "config_unknown_key",
      `${FILE}:3: unknown setting release.on_breech`,
      "did you mean on_breach?",
    ],
    [
      "a key at the wrong place",
      `plugin = "v2.toml"`,
      "config_unknown_key",
      `${FILE}:1: unknown setting plugin`,
      "write it below [release]",
    ],
    [
      "a mistyped table",
      `${CANDIDATE}[[stages]]\nitems = "1%"`,
      "config_unknown_key",
      `${FILE}:3: unknown setting stages`,
      "did you mean [[stage]]?",
    ],
    [
      "a stage that is no list",
      `${CANDIDATE}[stage]\nitems = "1%"`,
      INVALID,
      `${FILE}:3: stage`,
      "[[stage]]",
    ],
    [
      "a release that is a list",
      `[[release]]\nplugin = "v2.toml"`,
      INVALID,
      `${FILE}:1: release`,
      "[release]",
    ],
    [
      "alpha below its range",
      `${CANDIDATE}alpha = 0.0001`,
      INVALID,
      `${FILE}:3: release.alpha = 0.0001`,
      "0.001 to 0.2",
    ],
    [
      "alpha above its range",
      `${CANDIDATE}alpha = 0.5`,
      INVALID,
      `${FILE}:3: release.alpha = 0.5`,
      "0.001 to 0.2",
    ],
    ["alpha as a text", `${CANDIDATE}alpha = "5%"`, INVALID, `${FILE}:3: release.alpha = "5%"`, "a number"],
    [
      "another act on a breach",
      `${CANDIDATE}on_breach = "mail"`,
      INVALID,
      `${FILE}:3: release.on_breach`,
      "rollback, hold",
    ],
    [
      "a stage that says nothing",
      `${CANDIDATE}[[stage]]\nmin_items = 3`,
      "config_missing_key",
      `${FILE}:3: stage[1].items is not set`,
      "or set workers",
    ],
    [
      "a share without a percent sign",
      `${CANDIDATE}[[stage]]\nitems = 1`,
      INVALID,
      `${FILE}:4: stage[1].items = 1`,
      `a share such as "1%"`,
    ],
    [
      "shares that stand still",
      `${CANDIDATE}[[stage]]\nitems = "10%"\n[[stage]]\nitems = "10%"`,
      INVALID,
      `${FILE}:6: stage[2].items = "10%"`,
      "above 10%",
    ],
    [
      "shares that shrink",
      `${CANDIDATE}[[stage]]\nitems = "10%"\n\n[[stage]]\nitems = "5%"`,
      INVALID,
      `${FILE}:7: stage[2].items = "5%"`,
      "above 10%",
    ],
    [
      "a share of nothing",
      `${CANDIDATE}[[stage]]\nitems = "0%"`,
      INVALID,
      `${FILE}:4: stage[1].items`,
      "above 0%",
    ],
    [
      "all items at once",
      `${CANDIDATE}[[stage]]\nitems = "100%"`,
      INVALID,
      `${FILE}:4: stage[1].items`,
      "less than 100%",
    ],
    [
      "all items before others",
      `${CANDIDATE}[[stage]]\nitems = "100%"\n[[stage]]\nitems = "50%"`,
      INVALID,
      `${FILE}:4: stage[1].items = "100%"`,
      "below 100%",
    ],
    [
      "items and workers in two stages",
      `${CANDIDATE}[[stage]]\nworkers = 1\n[[stage]]\nitems = "50%"`,
      INVALID,
      `${FILE}:6: stage[2].items = "50%"`,
      "workers, as in the stage before",
    ],
    [
      "items and workers in one stage",
      `${CANDIDATE}[[stage]]\nitems = "1%"\nworkers = 2`,
      INVALID,
      `${FILE}:5: stage[1].workers = 2`,
      "either items or workers",
    ],
    [
      "as many workers as before",
      `${CANDIDATE}[[stage]]\nworkers = 2\n[[stage]]\nworkers = 2`,
      INVALID,
      `${FILE}:6: stage[2].workers = 2`,
      "3 or more",
    ],
    ["no worker", `${CANDIDATE}[[stage]]\nworkers = 0`, INVALID, `${FILE}:4: stage[1].workers = 0`, "from 1"],
    [
      "fewer items at most than at least",
      `${CANDIDATE}[[stage]]\nitems = "1%"\nmax_items = 99`,
      INVALID,
      `${FILE}:5: stage[1].max_items = 99`,
      "min_items (100) or more",
    ],
    [
      "a time that is a number",
      `${CANDIDATE}[[stage]]\nitems = "1%"\nmin_time = 10`,
      INVALID,
      `${FILE}:5: stage[1].min_time = 10`,
      `a duration from "0ms" to "30d"`,
    ],
    [
      "a metric of no kind",
      `${CANDIDATE}[[metric]]\nmax_worse = "1%"`,
      "config_missing_key",
      `${FILE}:3: metric[1].kind is not set`,
      "errors, slower, number",
    ],
    [
      "a metric of an unknown kind",
      `${CANDIDATE}[[metric]]\nkind = "latency"`,
      INVALID,
      `${FILE}:4: metric[1].kind = "latency"`,
      "errors, slower, number",
    ],
    [
      "errors twice",
      `${CANDIDATE}[[metric]]\nkind = "errors"\n[[metric]]\nkind = "errors"\nmax_worse = "2%"`,
      INVALID,
      `${FILE}:6: metric[2].kind = "errors"`,
      "one metric of kind errors",
    ],
    [
      "slower twice",
      `${CANDIDATE}[[metric]]\nkind = "slower"\nthan = "1s"\n[[metric]]\nkind = "slower"\nthan = "2s"`,
      INVALID,
      `${FILE}:7: metric[2].kind = "slower"`,
      "one metric of kind slower",
    ],
    [
      "a number twice",
      `${CANDIDATE}[[metric]]\nkind = "number"\npointer = "/a/x"\n[[metric]]\nkind = "number"\nname = "x"\npointer = "/b"`,
      INVALID,
      `${FILE}:8: metric[2].name = "x"`,
      "one metric of the name x",
    ],
    [
      "a number that is called errors",
      `${CANDIDATE}[[metric]]\nkind = "number"\nname = "errors"\npointer = "/e"`,
      INVALID,
      `${FILE}:5: metric[1].name = "errors"`,
      "not errors or slower",
    ],
    [
      "a pointer that is none",
      `${CANDIDATE}[[metric]]\nkind = "number"\nname = "s"\npointer = "score"`,
      INVALID,
      `${FILE}:6: metric[1].pointer = "score"`,
      "a JSON pointer",
    ],
    [
      "a range from high to low",
      `${CANDIDATE}[[metric]]\nkind = "number"\npointer = "/s"\nrange = [1, 0]`,
      INVALID,
      `${FILE}:6: metric[1].range = [1,0]`,
      "the lower one first",
    ],
    [
      "a rate's max_worse outside the range",
      `${CANDIDATE}[[metric]]\nkind = "errors"\nmax_worse = "100%"`,
      INVALID,
      `${FILE}:5: metric[1].max_worse = "100%"`,
      `to below "100%"`,
    ],
    [
      "a number's max_worse outside its range",
      `${CANDIDATE}[[metric]]\nkind = "number"\npointer = "/s"\nrange = [0, 10]\nmax_worse = 10`,
      INVALID,
      `${FILE}:7: metric[1].max_worse = 10`,
      "from 0 to below 10",
    ],
    [
      "a number's max_worse below zero",
      `${CANDIDATE}[[metric]]\nkind = "number"\npointer = "/s"\nmax_worse = -1`,
      INVALID,
      `${FILE}:6: metric[1].max_worse = -1`,
      "from 0",
    ],
    [
      "a key of another kind of metric",
      `${CANDIDATE}[[metric]]\nkind = "errors"\nthan = "1s"`,
      "config_unknown_key",
      `${FILE}:5: unknown setting metric[1].than`,
      "known are kind, max_worse",
    ],
    [
      "no time that slower means",
      `${CANDIDATE}[[metric]]\nkind = "slower"`,
      "config_missing_key",
      `${FILE}:3: metric[1].than is not set`,
      "a duration",
    ],
  ];
  for (const [what, text, code, message, hint] of REFUSED) {
    it(`is refused with ${what}, saying where and what is allowed`, () => {
      const refused = refusalOf(() => parseRelease(FILE, text, undefined));
      expect(refused.code).to.equal(code);
      expect(refused.message).to.include(message);
      expect(refused.hint).to.include(hint);
    });
  }

  it("is refused with two candidates", () => {
    const refused = refusalOf(() => parseRelease(FILE, CANDIDATE, "/elsewhere/v3.toml"));
    expect(refused.code).to.equal("config_contradiction");
    expect(refused.message).to.include(`${FILE}:2: release.plugin = /releases/v2.toml`);
    expect(refused.message).to.include("--plugin = /elsewhere/v3.toml");
  });
});

describe("a release of flags", () => {
  it("has the stages and the margin that they say", () => {
    expect(releaseOfFlags(flags({ stages: "10%, 50%", maxWorse: "5%" }), "/home")).to.deep.equal({
      manifestFile: "/home/v2.toml",
      spec: {
        alpha: 0.05,
        onBreach: "rollback",
        stages: [itemStage(0.1), itemStage(0.5), itemStage(1)],
        metrics: [{ kind: "errors", maxWorse: 0.05 }],
      },
    });
    expect(releaseOfFlags(flags({}), "/home").spec.stages).to.have.length(4);
  });

  const REFUSED: readonly [what: string, given: Partial<ReleaseFlags>, message: string, hint: string][] = [
    ["no candidate", { plugin: undefined }, "release.plugin is not set", "--plugin MANIFEST"],
    ["shares that shrink", { stages: "10%,5%" }, `flag --stages: stage[2].items = "5%"`, "above 10%"],
    ["a share without a percent sign", { stages: "10" }, `flag --stages: stage[1].items = "10"`, `"1%"`],
    ["no share", { stages: "" }, `flag --stages: stage[1].items = ""`, `"1%"`],
    ["a margin of all", { maxWorse: "100%" }, `flag --max-worse: metric[1].max_worse = "100%"`, "below"],
    [
      "a margin that is no share",
      { maxWorse: "much" },
      `flag --max-worse: metric[1].max_worse = "much"`,
      `"1%"`,
    ],
  ];
  for (const [what, given, message, hint] of REFUSED) {
    it(`is refused with ${what}, naming the flag`, () => {
      const refused = refusalOf(() => releaseOfFlags(flags(given), "/home"));
      expect(refused.message).to.include(message);
      expect(refused.hint).to.include(hint);
    });
  }
});
