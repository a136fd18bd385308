// `rollout run` with keys: a state that goes from item to item, a failed item that parks its key, and both ways on.
import { rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { withLocalRun } from "../support/local-run.ts";

/** Adds its number to those that its key has had; one that is not allowed fails, as often as it is tried. */
const ADD = `
n="$1"
if [ "$n" = 3 ] && [ -e broken ]; then echo "not 3" >&2; exit 3; fi
echo "$n" >> "$ROLLOUT_STATE"
tr '\\n' ' ' < "$ROLLOUT_STATE"
`;

const INPUT = [1, 2, 3, 4, 5, 6].map(
  (n) => `{"id":"n${n}","n":${n},"k":"${n % 2 === 1 ? "odd" : "even"}"}\n`,
);

/** A message that is passed on fails where it arrives. */
const RELAY = `
import { actor, defineActor } from "rollout/actors";
import { sendTo, setup } from "xstate";
export const relay = defineActor({
  machine: setup({ guards: { breaks: () => { throw new Error("it broke"); } } }).createMachine({
    on: {
      pass: { actions: sendTo(actor("relay", "to"), ({ event }) => ({ type: "land", n: event.n })) },
      land: { guard: "breaks" },
    },
  }),
});
`;
const RELAY_MANIFEST = `name = "relay"
version = "1"
backend = "actor"
[actor]
module = "relay.mjs"
types = ["relay"]
state_version = 1
`;

describe("rollout run with keys", () => {
  it("hands a state from item to item, parks a key whose item fails, and goes on with it or without", async () => {
    await withLocalRun({ items: 0, workers: 2 }, async (place) => {
      writeFileSync(place.file("in.jsonl"), INPUT.join(""));
      writeFileSync(place.file("add.sh"), ADD);
      writeFileSync(place.file("broken"), "");
      const words = (out: string, ...flags: string[]): string[] => [
        ...["run", "in.jsonl", "-o", out, "--workers", "2", "--max-attempts", "1"],
        ...["--key-field", "k", ...flags, "--", "sh", "add.sh", "{.n}"],
      ];
      const outputs = async (out: string): Promise<unknown> =>
        Object.fromEntries((await place.results(out)).map(({ id, output }) => [id, String(output).trim()]));

      const parked = await place.wordsTo(1, words("out.jsonl"));
      expect(parked.stderr).to.contain("not complete: 4 of 6 done").and.contain("1 item waits behind 1 key");
      expect(parked.stderr).to.contain("--on-failed skip --").and.contain("--retry-failed --");
      const even = { n2: "2", n4: "2 4", n6: "2 4 6" };
      expect(await outputs("out.jsonl")).to.deep.equal({ n1: "1", ...even });
      const other = await place.wordsTo(2, words("out.jsonl").toSpliced(8, 2, "--key-field", "id"));
      expect(other.stderr).to.contain("is of another task").and.contain("with --key-field k");

      rmSync(place.file("broken"));
      const whole = await place.wordsTo(0, words("out.jsonl", "--retry-failed"));
      expect(whole.stderr).to.contain("6 of 6 done");
      expect(await outputs("out.jsonl")).to.deep.equal({ n1: "1", n3: "1 3", n5: "1 3 5", ...even });

      writeFileSync(place.file("broken"), "");
      await place.wordsTo(1, words("skip.jsonl"));
      const skipped = await place.wordsTo(1, words("skip.jsonl", "--on-failed", "skip"));
      expect(skipped.stderr).to.contain("5 of 6 done");
      expect(await outputs("skip.jsonl")).to.deep.equal({ n1: "1", n5: "1 5", ...even });
    });
  });

  it("has what fails between actors among the failures, behind results in the order of the input, and goes on behind it", async () => {
    await withLocalRun({ items: 0, workers: 1 }, async (place) => {
      writeFileSync(place.file("relay.mjs"), RELAY);
      writeFileSync(place.file("relay.toml"), RELAY_MANIFEST);
      const events = [1, 2].map((n) => ({ id: `n${n}`, relay: `from${n}`, type: "pass", n }));
      writeFileSync(place.file("in.jsonl"), events.map((event) => `${JSON.stringify(event)}\n`).join(""));
      const words = (...flags: string[]): string[] => [
        ...["run", "in.jsonl", "-o", "out.jsonl", "--workers", "1", "--max-attempts", "1"],
        ...["--plugin", "relay.toml", "--key-field", "relay", "--order", "input", ...flags],
      ];
      const idsIn = async (file: string): Promise<unknown[]> =>
        (await place.results(file)).map(({ id, ok }) => [id, ok]);

      const parked = await place.wordsTo(1, words());
      expect(parked.stderr).to.contain("1 item waits behind 1 key that is parked");
      expect(await idsIn("out.jsonl")).to.deep.equal([
        ["n1", true],
        ["n2", true],
      ]);
      expect(await idsIn("out.errors.jsonl")).to.deep.equal([[null, false]]);

      const skipped = await place.wordsTo(1, words("--on-failed", "skip"));
      expect(skipped.stderr).to.contain("2 of 2 done").and.contain("2 failed inside, between actors");
      expect(await idsIn("out.errors.jsonl")).to.have.length(2);
      expect(await idsIn("out.jsonl")).to.have.length(2);
    });
  });
});
