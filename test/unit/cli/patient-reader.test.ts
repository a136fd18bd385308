import { expect } from "chai";
import { failure } from "../../../src/base/errors.ts";
import { PatientReader } from "../../../src/cli/watch.ts";
import { failureOf } from "../../support/rejection.ts";

describe("a patient reader", () => {
  const away = failure("coordinator_refused_connection", { address: "127.0.0.1:1" });
  const refused = failure("permission_denied", { who: "somebody", method: "GetRun" });

  it("waits for a coordinator that goes away, and says so once, and once that it is back", async () => {
    const told: string[] = [];
    const reader = new PatientReader((sentence) => told.push(sentence));
    const answers = [1, away, away, 2, 3];
    const read = answers.map((answer) => async () => {
      if (typeof answer === "number") return answer;
      throw answer;
    });
    const seen: (number | undefined)[] = [];
    for (const ask of read) seen.push(await reader.read(ask));
    expect(seen).to.deep.equal([1, undefined, undefined, 2, 3]);
    expect(told).to.deep.equal([`Waiting: ${away.message}.`, "The coordinator answers again."]);
  });

  it("waits neither for a coordinator that never answered nor after an error that waiting does not end", async () => {
    const reader = new PatientReader(() => undefined);
    expect(await failureOf(reader.read(() => Promise.reject(away)))).to.equal(away);
    await reader.read(() => Promise.resolve(1));
    expect(await failureOf(reader.read(() => Promise.reject(refused)))).to.equal(refused);
  });
});
