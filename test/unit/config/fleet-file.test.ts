import { expect } from "chai";
import { readFleets } from "../../../src/config/fleet-file.ts";
import { parseConfigText } from "../../../src/config/toml-file.ts";
import { failureOf } from "../../support/rejection.ts";

const FILE = "/etc/rollout/rollout.toml";
const WHOLE = `[[fleet]]
name = "spot"
provider = "exec"
command = ["./vm", "--zone", "a"]
max = 40`;
const SSH = `[[fleet]]
name = "lab"
provider = "ssh"
hosts = ["a", "user@b=16"]`;

function read(text: string): ReturnType<typeof readFleets> {
  return readFleets(
    FILE,
    parseConfigText(
      FILE,
      text,
      () => false,
      (name) => name === "fleet",
    ),
  );
}

describe("fleets in rollout.toml", () => {
  it("have a name, a provider and a maximum, and defaults for the rest", () => {
    expect(read(WHOLE)).to.deep.equal([
      {
        ...{
          name: "spot",
          slots: 1,
          min: 0,
          max: 40,
          pollIntervalMs: 10_000,
          startTimeoutMs: 300_000,
          orphanTimeoutMs: 1_800_000,
        },
        ...{ queueTimeoutMs: undefined, idleTimeoutMs: 60_000, finishWithinMs: 600_000, maxPending: 8 },
        ...{ maxLifetimeMs: undefined, pricePerHour: undefined, maxMachineHours: undefined },
        ...{ maxCost: undefined, maxCostPerHour: undefined, stopAtMs: undefined, advertise: undefined },
        provider: {
          ...{ kind: "exec", command: ["./vm", "--zone", "a"] },
          ...{ timeoutMs: 60_000, directory: "/etc/rollout" },
        },
      },
    ]);
    expect(read("")).to.deep.equal([]);
    const [fleet] = read(`${WHOLE}\nprice_per_hour = 0.5\nmax_cost = 12\nstop_at = "2027-01-31T18:00:00Z"`);
    expect(fleet).to.include({ pricePerHour: 0.5, maxCost: 12, stopAtMs: Date.UTC(2027, 0, 31, 18) });
  });

  it("by ssh have hosts, each with its slots, and as many workers as hosts", () => {
    const [lab] = read(
      `${SSH}\nslots = 4\ndir = "~/runs"\nargs = ["--plugin", "x.toml"]\nenv = { A = "1" }\nssh = ["ssh", "-F", "c"]`,
    );
    expect(lab).to.include({ slots: 4, max: 2, min: 0 });
    expect(lab?.provider).to.deep.equal({
      ...{ kind: "ssh", timeoutMs: 60_000, directory: "/etc/rollout", client: ["ssh", "-F", "c"] },
      hosts: [
        { host: "a", slots: 4 },
        { host: "user@b", slots: 16 },
      ],
      ...{ program: "rollout", args: ["--plugin", "x.toml"], hostDirectory: "runs", environment: { A: "1" } },
      ...{ plugin: undefined, tunnel: false },
    });
    // Counted by the one that has fewest, and by one where nobody knows.
    expect(read(`${SSH}\nslots = 0`)[0]).to.include({ slots: 1 });
  });

  for (const [what, text, code, said] of [
    ["no hosts", SSH.replace(/hosts.*/, "hosts = []"), "config_invalid_value", "1 to 1000 names"],
    ["a missing list of hosts", SSH.replace(/hosts.*/, ""), "config_missing_key", "fleet[1].hosts"],
    ["the same host twice", SSH.replace("user@b=16", "a=2"), "config_invalid_value", "a is there twice"],
    ["a host that would be an option", SSH.replace("user@b=16", "-oX"), "config_invalid_value", "-oX"],
    ["a host without slots", SSH.replace("=16", "=0"), "config_invalid_value", "slots from 1 to 1024"],
    ["more workers than hosts", `${SSH}\nmax = 3`, "config_invalid_value", "which is 2"],
    ["a key of another provider", `${SSH}\ncommand = ["x"]`, "config_invalid_value", "one of provider exec"],
    ["hosts of a program", `${WHOLE}\nhosts = ["a"]`, "config_invalid_value", "exec has command, timeout"],
    [
      "an address beside a tunnel",
      `${SSH}\ntunnel = true\nadvertise = ["head:1"]`,
      "config_invalid_value",
      "through the tunnel",
    ],
    ["a fleet of no slots", `${WHOLE}\nslots = 0`, "config_invalid_value", "from 1 to 1024"],
    ["a missing maximum", WHOLE.replace("max = 40", ""), "config_missing_key", "fleet[1].max"],
    ["an unknown key", `${WHOLE}\nmaximum = 3`, "config_unknown_key", "maximum"],
    ["an unknown provider", WHOLE.replace('"exec"', '"cloud"'), "config_invalid_value", "exec"],
    ["a missing name", WHOLE.replace('name = "spot"', ""), "config_missing_key", "fleet[1].name"],
    ["a missing program", WHOLE.replace(/command.*\n/, ""), "config_missing_key", "fleet[1].command"],
    ["an empty program", WHOLE.replace(/command.*\n/, "command = []\n"), "config_invalid_value", "command"],
    ["a name that is no label", WHOLE.replace("spot", "My Fleet"), "config_invalid_value", "My Fleet"],
    ["min over max", `${WHOLE}\nmin = 41`, "config_invalid_value", "at most max, which is 40"],
    ["a cost without a price", `${WHOLE}\nmax_cost = 3`, "config_missing_key", "fleet[1].price_per_hour"],
    ["a price of nothing", `${WHOLE}\nprice_per_hour = 0`, "config_invalid_value", "above 0"],
    [
      "a rate below the price",
      `${WHOLE}\nprice_per_hour = 2\nmax_cost_per_hour = 1`,
      "config_invalid_value",
      "at least price_per_hour",
    ],
    ["a time without a zone", `${WHOLE}\nstop_at = "2027-01-31"`, "config_invalid_value", "with its zone"],
    ["the same name twice", `${WHOLE}\n${WHOLE}`, "config_invalid_value", "no other fleet"],
    ["a table in place of a list", "[fleet]\nname = 1", "config_invalid_value", "[[fleet]]"],
  ] as const)
    it(`refuse ${what}, with the key and what is allowed`, async () => {
      const error = await failureOf(Promise.resolve().then(() => read(text)));
      expect(error.code).to.equal(code);
      expect(`${error.message} ${error.hint}`).to.include(said);
    });
});
