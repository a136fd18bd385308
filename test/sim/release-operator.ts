// The person who begins a release in the middle of a simulated run, and decides now and then how it goes on.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { sleep } from "../../src/base/clock.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { newUlid } from "../../src/base/ids.ts";
import type { RunId } from "../../src/base/ids.ts";
import { createRelease, getRelease, isReleaseOver, steerRelease } from "../../src/client/releases.ts";
import type { Release } from "../../src/client/releases.ts";
import { ReleaseService } from "../../src/gen/rollout/v1/release_pb.ts";
import type { SimProcess } from "./process.ts";
import { CANDIDATE_DIGEST, CANDIDATE_VERSION, PLUGIN } from "./release-settings.ts";
import type { ReleaseDoing, ReleaseSettings } from "./release-settings.ts";
import { between } from "./world.ts";

const DOING_MAX_MS = 3_000;
const LOOK_EVERY_MS = 700;
/** Refusals that are answers: what was wanted cannot be done any more, or is not there. */
const ANSWERS: ReadonlySet<string> = new Set([
  ...["release_over", "release_completed", "release_unknown", "release_stage_waits", "release_not_over"],
  ...["release_run_over", "release_no_items", "release_keyed_only", "release_one_version"],
  "release_version_in_use",
]);

interface Ports {
  /** Asks again while nobody answers. */
  readonly ask: <Answer>(what: string, call: () => Promise<Answer>) => Promise<Answer>;
  /** Nothing more is to be done about the run. */
  readonly isOver: () => boolean;
}

export class ReleaseOperator {
  readonly #process: SimProcess;
  readonly #settings: ReleaseSettings;
  readonly #calls;
  readonly #ports: Ports;

  constructor(process: SimProcess, transport: Transport, settings: ReleaseSettings, ports: Ports) {
    this.#process = process;
    this.#settings = settings;
    this.#calls = createClient(ReleaseService, transport);
    this.#ports = ports;
  }

  /** Never rejects for what the run does not allow any more. */
  async work(): Promise<void> {
    const { clock, random } = this.#process;
    const { beginsWithinMs, doings, isAgain } = this.#settings;
    await sleep(clock, between(random, 0, beginsWithinMs));
    const first = await this.#begin();
    for (const doing of doings) {
      await sleep(clock, between(random, 0, DOING_MAX_MS));
      if (first !== undefined) await this.#do(first, doing);
    }
    const ended = first === undefined ? undefined : await this.#untilOver(first);
    if (isAgain && ended !== undefined && ended.state !== "completed") {
      const second = await this.#begin();
      if (second !== undefined) await this.#untilOver(second);
    }
  }

  /** The last of them as it is now; undefined where there was none. */
  async latest(): Promise<Release | undefined> {
    return this.#unlessRefused("look at the release", () => getRelease(this.#calls, ""));
  }

  async #begin(): Promise<string | undefined> {
    const { clock, random } = this.#process;
    const id = newUlid<RunId>(clock, random);
    const asked = {
      ...{ id, spec: this.#settings.spec, wait: true, dryRun: false },
      candidate: { name: PLUGIN, version: CANDIDATE_VERSION, digest: CANDIDATE_DIGEST },
    };
    for (;;) {
      const created = await this.#unlessRefused("begin a release", () => createRelease(this.#calls, asked));
      if (created !== undefined) return id;
      // The first item may not be in yet, and a run that is over takes no release.
      if (this.#ports.isOver()) return undefined;
      await sleep(clock, LOOK_EVERY_MS);
    }
  }

  async #do(id: string, doing: ReleaseDoing): Promise<void> {
    const release = await this.#look(id);
    if (release === undefined) return;
    const { stage } = release;
    this.#process.say(`asks to ${doing} release ${id} in stage ${stage}`);
    await this.#unlessRefused(doing, () => steerRelease(this.#calls, doing, { id, stage, reason: "lunch" }));
  }

  /** A release that is held goes on after a while: nothing waits for a person for ever. Undefined when the run ended before. */
  async #untilOver(id: string): Promise<Release | undefined> {
    const { clock } = this.#process;
    for (;;) {
      const release = await this.#look(id);
      if (release === undefined || isReleaseOver(release)) return release;
      if (this.#ports.isOver()) return undefined;
      await sleep(clock, LOOK_EVERY_MS);
    }
  }

  #look(id: string): Promise<Release | undefined> {
    return this.#unlessRefused("look at the release", () => getRelease(this.#calls, id));
  }

  async #unlessRefused<Answer>(what: string, call: () => Promise<Answer>): Promise<Answer | undefined> {
    try {
      return await this.#ports.ask(what, call);
    } catch (error) {
      if (!(error instanceof RolloutError) || !ANSWERS.has(error.code)) throw error;
      this.#process.say(`may not ${what}: ${error.code}`);
      return undefined;
    }
  }
}
