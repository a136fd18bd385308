// A fleet whose coordinator is killed at any moment, over a provider that answers late, not at all, or fails: a launch is repeated under its id alone,
// every machine has a row, and nobody is left behind.
import { expect } from "chai";
import { seededRandom } from "../../../../src/base/random.ts";
import type { Random } from "../../../../src/base/random.ts";
import type { FleetAnswer, FleetQuestion } from "../../../../src/coordinator/fleet/ports.ts";
import { FleetRig } from "./fleet-rig.ts";

const SEEDS = 200;
const STEP_MS = 250;

/** Machines as a provider has them: they start and end by its own time, whether anybody hears of it or not. */
class ShakyProvider {
  readonly running = new Set<string>();
  /** Allocations that ever ran: a launch that is repeated makes no second one. */
  readonly starts = new Set<string>();
  /** How often each was asked for. */
  readonly asked = new Map<string, number>();
  readonly #rig: FleetRig;
  readonly #random: Random;
  #pending: { readonly atMs: number; readonly act: () => Promise<void> }[] = [];
  /** Launches that have left, and have not taken effect yet. */
  #landing: { readonly atMs: number; readonly id: string }[] = [];
  /** Answers of before a kill reach nobody. */
  leadership = 0;

  constructor(rig: FleetRig, random: Random) {
    this.#rig = rig;
    this.#random = random;
  }

  /** Takes every question that has left, and does what is due. */
  async step(): Promise<void> {
    const { nowMs, asked } = this.#rig;
    for (const question of asked.splice(0)) this.#take(question, nowMs);
    for (const { id, atMs } of this.#landing.splice(0)) {
      if (atMs > nowMs) this.#landing.push({ id, atMs });
      else if (!this.running.has(id) && !this.starts.has(id)) {
        this.running.add(id);
        this.starts.add(id);
      }
    }
    const due = this.#pending.filter(({ atMs }) => atMs <= nowMs);
    this.#pending = this.#pending.filter(({ atMs }) => atMs > nowMs);
    for (const { act } of due) await act();
  }

  #take(question: FleetQuestion, nowMs: number): void {
    const { leadership } = this;
    const luck = this.#random.unit();
    const answerAtMs = nowMs + Math.floor(this.#random.unit() * 4_000);
    const answer = (heard: () => FleetAnswer): void => {
      const act = async (): Promise<void> => {
        if (leadership === this.leadership) await this.#rig.answer(heard());
      };
      this.#pending.push({ atMs: answerAtMs, act });
    };
    const { fleet } = question;
    const unknown = { kind: "unknown", reason: "it took too long" } as const;
    switch (question.verb) {
      case "launch": {
        const { allocation } = question;
        this.asked.set(allocation, (this.asked.get(allocation) ?? 0) + 1);
        const isFull = luck < 0.05;
        // Some land long after their answer, some never.
        if (!isFull && luck < 0.95)
          this.#landing.push({ id: allocation, atMs: nowMs + Math.floor(this.#random.unit() ** 4 * 20_000) });
        const launched = luck > 0.3 && luck < 0.95 ? ({ kind: "launched", ref: "7" } as const) : unknown;
        const full = { kind: "full", reason: "quota" } as const;
        return answer(() => ({ verb: "launch", fleet, allocation, answer: isFull ? full : launched }));
      }
      case "list": {
        const listed = [...this.running];
        return answer(() => ({
          ...{ verb: "list", fleet, number: question.number },
          answer:
            luck < 0.2
              ? unknown
              : {
                  kind: "listed",
                  allocations: listed.map((allocation) => ({
                    ...{ allocation, ref: "7", state: "running", isPreempted: false },
                  })),
                },
        }));
      }
      case "stop": {
        const { allocation } = question;
        if (luck > 0.3) this.running.delete(allocation);
        return answer(() => ({ verb: "stop", fleet, allocation, answer: { kind: "stopped" } }));
      }
      case "log":
        return answer(() => ({ verb: "log", fleet, allocation: question.allocation, answer: unknown }));
    }
  }
}

/** Workers join some time after their machine is there, drain when they are asked to, and are silent when it is gone. */
function followMachines(rig: FleetRig, provider: ShakyProvider, random: Random): void {
  for (const id of provider.running) {
    if (!rig.workers.has(id) && random.unit() < 0.2) rig.worker(id, { hasWorked: true });
    if (rig.drained.includes(id) && rig.workers.get(id)?.presence === "heard" && random.unit() < 0.3) {
      rig.worker(id, { presence: "left", isOfUse: false, hasItems: false });
      provider.running.delete(id);
    }
  }
  for (const [id, { presence, silentMs }] of rig.workers) {
    if (presence === "left" || provider.running.has(id)) continue;
    rig.worker(id, { presence: "silent", silentMs: silentMs + STEP_MS, isOfUse: false });
  }
}

describe("a fleet whose coordinator is killed", () => {
  it(`stays within its bounds and leaves nobody behind, over ${SEEDS} runs with a provider that answers as it likes`, async () => {
    const finished = { runs: 0, hasRelaunched: false, hasOrphans: false };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = seededRandom(seed);
      const rig = await FleetRig.open({ max: 5, startTimeoutMs: 20_000 });
      const provider = new ShakyProvider(rig, random);
      rig.submit(5);
      const step = async (): Promise<void> => {
        await rig.pass(STEP_MS);
        await provider.step();
        followMachines(rig, provider, random);
      };
      for (let steps = 0; steps < 400; steps++) {
        await step();
        if (rig.state === "Halted") await resume(rig);
        expect(rig.live.length, `seed ${seed}: above max`).to.be.at.most(5);
        if (random.unit() < 0.02) {
          provider.leadership++;
          await rig.restart();
        }
        const [first] = provider.running;
        if (first !== undefined && random.unit() < 0.005) provider.running.delete(first);
      }
      rig.numbers = { ...rig.numbers, pending: 0, isIdle: true, isOver: true };
      for (let steps = 0; steps < 20_000 && rig.live.length + provider.running.size > 0; steps++)
        await step();
      expect([rig.live, [...provider.running]], `seed ${seed}: left behind`).to.deep.equal([[], []]);
      // Each machine that ever ran has its row.
      for (const id of provider.starts)
        expect(rig.stateOf(id), `seed ${seed}`).to.be.oneOf(["Gone", "Failed"]);
      finished.runs++;
      finished.hasRelaunched ||= [...provider.asked.values()].some((times) => times > 1);
      finished.hasOrphans ||= rig.events.includes("allocation_orphan");
    }
    expect(finished).to.deep.equal({ runs: SEEDS, hasRelaunched: true, hasOrphans: true });
  });
});

async function resume(rig: FleetRig): Promise<void> {
  await rig.turn((turn) => {
    rig.fleets.steer(turn, { by: "ada", decision: { action: "resume", fleet: "spot" } }, rig.run);
  });
}
