// The moves of an actor, held and stepped through while new ones come.
import { expect } from "chai";
import { Playback } from "../../../../src/inspector/page/known/playback.ts";
import type { Move } from "../../../../src/inspector/page/known/playback.ts";
import { KnownPrograms, LOG_KEPT, movesOf } from "../../../../src/inspector/page/known/programs.ts";
import { branchesOf } from "../../../../src/inspector/page/known/actor-tree.ts";
import type { ActorRow } from "../../../../src/inspector/page-messages.ts";
import { madeProgram, programLog } from "../../../support/made-cluster.ts";

const WAY = ["A", "B", "C", "D", "E"];

function moves(count: number): Move[] {
  return Array.from({ length: count }, (_, at) => ({
    ...{ number: at + 10, atMs: at, event: "go", cause: "go", isMove: true, detail: "" },
    ...{ from: WAY[at] ?? "", to: WAY[at + 1] ?? "" },
  }));
}

describe("moves that are played back", () => {
  it("follow what happens, until they are held", () => {
    const playback = new Playback();
    expect(playback.sight([], "A")).to.deep.equal({ state: "A", taken: null });
    expect(playback.sight(moves(2), "C").state).to.equal("C");
    playback.pause(moves(2));
    expect(playback.sight(moves(4), "E").state).to.equal("C");
    expect([playback.newer(moves(4)), playback.moves(moves(4)).length]).to.deep.equal([2, 2]);
    playback.resume();
    expect(playback.sight(moves(4), "E")).to.deep.include({ state: "E" });
  });

  it("go back to before the first, and forth to the last that was there when they were held", () => {
    const playback = new Playback();
    const states = Array.from({ length: 5 }, () => {
      playback.back(moves(3));
      return playback.sight(moves(4), "E").state;
    });
    expect(states).to.deep.equal(["C", "B", "A", "A", "A"]);
    expect(playback.sight(moves(4), "E").taken).to.equal(null);
    for (let more = 0; more < 9; more++) playback.forward();
    expect(playback.sight(moves(4), "E").state).to.equal("D");
    playback.goTo(moves(4), 11);
    expect([playback.happened(moves(4)), playback.sight(moves(4), "E").taken?.number]).to.deep.equal([2, 11]);
    playback.goTo(moves(4), 99);
    expect(playback.happened(moves(4))).to.equal(2);
  });
});

describe("a program of strangers", () => {
  it("has a log that is bounded, and moves made of its events and snapshots", () => {
    const programs = new KnownPrograms();
    for (const news of madeProgram(3, null))
      if (news.kind !== "hello" && "program_id" in news) programs.take(news);
    // Nobody has said that there is such a program.
    expect(programs.all).to.be.empty;
    for (const news of madeProgram(3, null)) programs.take(news as Parameters<KnownPrograms["take"]>[0]);
    for (let from = 0; from < 3 * LOG_KEPT; from += 100)
      programs.take({ kind: "log", program_id: "p1", entries: programLog(from, 100), dropped: 0 });
    const log = programs.find("p1")?.log ?? [];
    expect(log.length).to.be.within(LOG_KEPT, 1.5 * LOG_KEPT);
    expect(log.at(-1)?.number).to.equal(3 * LOG_KEPT);
    expect(
      movesOf(programLog(0, 4), "x:0").map(({ event, from, to, isMove }) => [event, from, to, isMove]),
    ).to.deep.equal([
      ["item.assigned", "", "", false],
      ["→ item.assigned", "", "Running", true],
      ["item.lost", "Running", "Running", false],
      ["→ item.lost", "Running", "Pending", true],
    ]);
  });

  it("may have parents in a circle, or parents that are not there, and a chain of ten thousand", () => {
    const row = (session_id: string, parent_id: string | null): [string, ActorRow] => [
      session_id,
      { session_id, parent_id, name: session_id, definition: null, value: "", status: "active" },
    ];
    const rows = [
      row("b", "a"),
      row("a", null),
      row("c", "b"),
      row("x", "y"),
      row("y", "x"),
      row("me", "me"),
      row("o", "gone"),
    ];
    const branches = branchesOf(new Map(rows));
    expect(branches.map(({ actor, depth }) => `${actor.session_id}${depth}`)).to.deep.equal([
      ...["a0", "b1", "c2", "o0", "x0", "y1", "me0"],
    ]);
    const chain = Array.from({ length: 10_000 }, (_, at) =>
      row(String(at), at === 0 ? null : String(at - 1)),
    );
    expect(branchesOf(new Map(chain)).at(-1)?.depth).to.equal(9_999);
  });
});
