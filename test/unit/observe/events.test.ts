import { expect } from "chai";
import { EVENTS, NoopEmitter, TOPICS } from "../../../src/observe/events.ts";

describe("the table of events", () => {
  it("documents each topic and each field in one line", () => {
    for (const topic of TOPICS) {
      const row = EVENTS[topic];
      for (const line of [row.doc, ...Object.values(row.fields)]) {
        expect(line, topic).to.match(/^\S[^\n]*\S$/);
      }
    }
  });

  it("names topics and fields in snake case", () => {
    for (const name of [...TOPICS, ...TOPICS.flatMap((topic) => Object.keys(EVENTS[topic].fields))]) {
      expect(name).to.match(/^[a-z]+(_[a-z]+)*$/);
    }
  });

  it("has no field that would hide a part of the envelope", () => {
    for (const topic of TOPICS) {
      expect(EVENTS[topic].fields).to.not.have.any.keys("ts", "run_id", "kind", "topic", "level");
    }
  });
});

describe("an emitter of nothing", () => {
  it("takes everything", () => {
    expect(() => new NoopEmitter().emit()).to.not.throw();
  });
});
