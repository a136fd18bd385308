import { expect } from "chai";
import type { WorkerRow } from "../../../src/inspector/page-messages.ts";
import { WorkerBoard } from "../../../src/inspector/worker-board.ts";

function row(worker_id: string, more: Partial<WorkerRow> = {}): WorkerRow {
  return {
    ...{ worker_id, incarnation: "i", state: "ready", liveness: "alive", load: 0, slots: 4, held: 0 },
    ...{ plugins: [], last_beat_age_ms: 10, cordon_reason: null, trouble: null, revoked: false, drain: null },
    ...more,
  };
}

describe("the board of workers", () => {
  let board: WorkerBoard;
  let nowMs: number;
  /** Ids of those that are told of in the next round, a second later. */
  const told = (...rows: WorkerRow[]): readonly string[] => {
    nowMs += 1_000;
    return board.take(rows, nowMs)?.changed.map(({ worker_id }) => worker_id) ?? [];
  };

  beforeEach(() => ([board, nowMs] = [new WorkerBoard(), 0]));

  it("tells of a worker that is new, changes or goes, and of no other", () => {
    expect(told(row("a"), row("b"))).to.deep.equal(["a", "b"]);
    expect(board.take([row("a"), row("b")], nowMs)).to.equal(undefined);
    expect(told(row("a"), row("b", { liveness: "suspected" }))).to.deep.equal(["b"]);
    expect(told(row("a", { held: 3 }), row("b", { liveness: "suspected" }))).to.deep.equal(["a"]);
    expect(told(row("a", { held: 3, trouble: "no disk" }))).to.deep.equal(["a"]);
    expect(board.take([], nowMs)).to.deep.include({ changed: [], gone: ["a"] });
    expect(told(row("b"))).to.deep.equal(["b"]);
  });

  it("says nothing of beats that come, and of silence now and then", () => {
    told(row("a"));
    for (const age of [100, 900, 0, 2_900])
      expect(told(row("a", { last_beat_age_ms: age })), `${age}`).to.be.empty;
    const silent = Array.from({ length: 100 }, (_, second) =>
      told(row("a", { last_beat_age_ms: second * 1_000 })),
    );
    expect(silent.flatMap((rows, second) => (rows.length === 0 ? [] : [second]))).to.deep.equal([
      3, 5, 10, 20, 40, 80,
    ]);
    expect(told(row("a", { last_beat_age_ms: null }))).to.deep.equal(["a"]);
  });

  it("says nothing of time that runs out as it was said, and tells of an end that moves", () => {
    const draining = (left_ms: number): WorkerRow =>
      row("a", { drain: { state: "Finishing", cause: "operator", left_ms } });
    expect(told(draining(60_000))).to.deep.equal(["a"]);
    expect(told(draining(59_100))).to.be.empty;
    expect(told(draining(57_900))).to.be.empty;
    expect(told(draining(20_000))).to.deep.equal(["a"]);
  });

  it("stays small with thousands that are busy: states at once, loads by and by, and none is forgotten", () => {
    const fleet = (held: number, failed: string[] = []): WorkerRow[] =>
      Array.from({ length: 2_000 }, (_, at) => {
        const id = String(at).padStart(4, "0");
        return row(id, { held, ...(failed.includes(id) && { liveness: "failed" }) });
      });
    expect(told(...fleet(0))).to.have.length(2_000);
    const heard = new Set<string>();
    for (let round = 1; round <= 10; round++) {
      const ids = told(...fleet(round, ["1999"]));
      expect(ids).to.have.length(round === 1 ? 201 : 200);
      if (round === 1) expect(ids[0]).to.equal("1999");
      for (const id of ids) heard.add(id);
    }
    expect(heard.size).to.be.at.least(1_999);
    expect(board.rows).to.have.length(2_000);
  });
});
