import { readFileSync } from "node:fs";
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

  it("says of each event of leadership and the database what it means, and on the page of operations what to do", () => {
    const page = readFileSync(new URL("../../../docs/OPERATIONS.md", import.meta.url), "utf8");
    const told = [...page.matchAll(/^\| `(\w+)` +\|[^|]{5,}\|$/gm)].map(([, topic]) => topic);
    const topics = TOPICS.filter((topic) => /^(coordinator|store)_/.test(topic));
    expect(topics).to.have.length.greaterThan(5);
    expect(told).to.include.members(topics);
    const meanings = readFileSync(new URL("../../../docs/EVENTS.md", import.meta.url), "utf8");
    for (const topic of topics) {
      expect(EVENTS[topic].doc, topic).to.have.length.least(10);
      expect(meanings, topic)
        .to.match(new RegExp(`^\\| \\[\`${topic}\`\\].*\\| (.+) \\|$`, "m"))
        .and.include(`| ${EVENTS[topic].doc} `);
    }
  });
});

describe("an emitter of nothing", () => {
  it("takes every event and does nothing", () => {
    expect(() => new NoopEmitter().emit()).to.not.throw();
  });
});
