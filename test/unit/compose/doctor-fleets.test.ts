import { expect } from "chai";
import { chmod, writeFile } from "node:fs/promises";
import { examineFleetSettings, fleetsFound } from "../../../src/compose/doctor/fleets.ts";
import type { FleetDetail } from "../../../src/client/fleets.ts";
import type { ClientConfig } from "../../../src/config/resolve.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { SETTINGS } from "../coordinator/fleet/fleet-rig.ts";

describe("the doctor of fleets", () => {
  const directory = useTemporaryDirectory();

  function examine(command: string, address = "10.0.0.7:50051"): ReturnType<typeof examineFleetSettings> {
    const provider = { ...SETTINGS.provider, command: [command] as const, directory: directory.path };
    const worker = { coordinatorAddr: [address] } as unknown as ClientConfig["worker"];
    return examineFleetSettings(
      { fleets: [{ ...SETTINGS, provider }], source: "rollout.toml", worker },
      "/nowhere",
    );
  }

  it("finds the program of each, and says of one that is missing or may not be executed where it is named", async () => {
    await writeFile(directory.file("make"), "#!/bin/sh\n");
    expect(await examine("./make"))
      .to.have.nested.property("[0].detail")
      .that.matches(/may not be executed/);
    await chmod(directory.file("make"), 0o700);
    expect(await examine("./make")).to.deep.equal([
      { subject: "fleet", verdict: "good", detail: `spot: its program is ${directory.file("make")}` },
    ]);
    const [missing] = await examine("made-up");
    expect(missing).to.include({ subject: "fleet", verdict: "failure" });
    expect(missing?.detail).to.match(/fleet\[1\]\.command.*no directory of the PATH has it/);
  });

  it("warns where no other machine reaches the coordinator", async () => {
    const found = await examine("/bin/sh", "127.0.0.1:50051");
    expect(found.map(({ verdict }) => verdict)).to.deep.equal(["good", "warning"]);
    expect(found[1]?.detail).to.include("workers of spot on other machines cannot reach");
  });

  it("tells of one that is halted, and of one that cannot be listed", () => {
    const line = (...words: readonly string[]): string => `rollout ${words.join(" ")}`;
    const fleet = { name: "spot", state: "active", reason: "" } as FleetDetail["fleet"];
    const about = { fleet, facts: [], allocations: [], listTrouble: "" };
    const halted = { ...about, fleet: { ...fleet, state: "halted" as const, reason: "no such image" } };
    expect(fleetsFound([about], line)).to.deep.equal([]);
    const found = fleetsFound([halted, { ...about, listTrouble: "it is down" }], line);
    expect(found.map(({ detail }) => detail)).to.deep.equal([
      "spot is halted: no such image",
      "spot cannot be listed, and nothing is started or ended meanwhile: it is down",
    ]);
    expect(found[0]?.hint).to.include("`rollout fleet resume spot`");
  });
});
