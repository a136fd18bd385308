// The wire contract: proto/ is tidy, the generated code is what buf makes of it, and what was promised holds.
import { expect } from "chai";
import { globSync } from "node:fs";
import { houseForAll, houseForEach } from "./house.ts";

const COPIED = [
  "package.json",
  "buf.yaml",
  "buf.gen.yaml",
  "proto",
  "CHANGELOG.md",
  "scripts",
  ".oxfmtrc.json",
];
const PROTO = "proto/rollout/v1/heartbeat.proto";

/** The first field of the file is gone, its number with it. */
function withoutFirstField(proto: string): string {
  return proto.replace(/^ {2}(?:bytes|string|optional|uint\w+|[A-Z]\w+) .*= 1;\n/m, "");
}

describe("canary: buf lint", () => {
  const house = houseForAll(COPIED);

  it("passes the contract as it is", async () => {
    expect(await house.check("proto-lint")).to.deep.equal({ code: 0, output: "" });
  });

  it("refuses a field that is not in snake_case", async () => {
    house.plant({
      "proto/rollout/v1/x.proto":
        'syntax = "proto3";\npackage rollout.v1;\nmessage X { bytes wrongName = 1; }',
    });
    const { code, output } = await house.check("proto-lint");
    expect(output).to.include("wrongName");
    expect(code).to.not.equal(0);
  });
});

describe("canary: the generated code", () => {
  const house = houseForEach([...COPIED, "src/gen"]);

  const generated = (): string => {
    const [first] = globSync("src/gen/**/*.ts", { cwd: house.path });
    if (first === undefined) throw new Error("nothing generated");
    return first;
  };

  it("passes as it is", async () => {
    expect(await house.check("gen")).to.include({ code: 0 });
  });

  it("fails when a file was changed by hand", async () => {
    const file = generated();
    house.plant({ [file]: `${house.read(file)}// By hand.\n` });
    const { code, output } = await house.check("gen");
    expect(output).to.include(`${file} is not what buf generates`);
    expect(code).to.equal(1);
  });

  it("fails when a file is missing", async () => {
    house.remove(generated());
    expect(await house.check("gen")).to.include({ code: 1 });
  });

  it("fails when a file is left over", async () => {
    house.plant({ "src/gen/rollout/v1/old_pb.ts": "export {};" });
    expect(await house.check("gen")).to.include({ code: 1 });
  });

  it("fails when proto/ has moved on", async () => {
    house.plant({ [PROTO]: withoutFirstField(house.read(PROTO)) });
    expect(await house.check("gen")).to.include({ code: 1 });
  });
});

describe("canary: breaking the contract", () => {
  const house = houseForEach(COPIED);
  beforeEach(async () => {
    await house.run("node", "scripts/proto-baseline.ts", "as it is");
  });

  const promise = (word: string): void => house.plant({ "proto/STABILITY": `${word}\n` });
  const breakIt = (): void => house.plant({ [PROTO]: withoutFirstField(house.read(PROTO)) });

  it("passes the contract as it is", async () => {
    promise("stable");
    expect(await house.check("proto-breaking")).to.include({ code: 0 });
  });

  it("fails on a break once the contract is stable", async () => {
    promise("stable");
    breakIt();
    const { code, output } = await house.check("proto-breaking");
    expect(output).to.include(PROTO);
    expect(code).to.equal(1);
  });

  it("tells a break while the contract is unstable", async () => {
    promise("unstable");
    breakIt();
    const { code, output } = await house.check("proto-breaking");
    expect(output)
      .to.include(PROTO)
      .and.to.match(/\n[1-9]\d* breaks against baseline \w{12}, allowed while unstable\n$/);
    expect(code).to.equal(0);
  });

  it("fails when nobody says whether it is stable", async () => {
    promise("perhaps");
    expect(await house.check("proto-breaking")).to.include({ code: 1 });
  });

  for (const word of ["stable", "unstable"]) {
    it(`fails on a baseline that the changelog does not name, while ${word}`, async () => {
      promise(word);
      house.plant({ "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n" });
      const { code, output } = await house.check("proto-breaking");
      expect(output).to.include("CHANGELOG.md does not name the baseline");
      expect(code).to.equal(1);
    });
  }

  it("fails without a baseline", async () => {
    house.remove("proto/baseline.binpb");
    expect(await house.check("proto-breaking")).to.include({ code: 1 });
  });

  it("takes a new baseline only with a reason, and writes it into the changelog", async () => {
    promise("stable");
    breakIt();
    const before = house.read("CHANGELOG.md");
    expect(await house.run("node", "scripts/proto-baseline.ts")).to.include({ code: 2 });
    expect(house.read("CHANGELOG.md")).to.equal(before);
    const { code } = await house.run("node", "scripts/proto-baseline.ts", "the field", "was never sent");
    expect(code).to.equal(0);
    expect(house.read("CHANGELOG.md")).to.match(/^- Baseline `[0-9a-f]{12}`: the field was never sent$/m);
    expect(await house.check("proto-breaking")).to.include({ code: 0 });
  });
});
