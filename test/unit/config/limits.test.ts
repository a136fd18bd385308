import { expect } from "chai";
import { LIMITS, assertLimits } from "../../../src/config/limits.ts";
import { SETTINGS } from "../../../src/config/schema.ts";
import { parseSizeBytes } from "../../../src/config/value.ts";

describe("limits", () => {
  it("agree where one depends on another", () => {
    expect(assertLimits).to.not.throw();
  });

  it("agree with the settings that they bound", () => {
    expect(parseSizeBytes(SETTINGS["events.buffer"].min)).to.equal(LIMITS.eventsBufferMinBytes);
    expect(parseSizeBytes(SETTINGS["events.buffer"].max)).to.equal(LIMITS.eventsBufferMaxBytes);
  });
});
