// Several coordinators of one run over one Postgres, as processes of this machine: what `rollout init --coordinators` writes for their hosts,
// with no word changed. And what joins them: workers by a bundle, each in a directory of its own, and a client that finds the one that
// leads.
import { sleep, systemClock } from "../../src/base/clock.ts";
import { RolloutClient } from "../../src/compose/rollout-client.ts";
import type { Variables } from "./launcher.ts";
import { LocalLauncher } from "./local-launcher.ts";
import { Member } from "./member.ts";

/** Where one coordinator listens and is reached, and how it reaches the database: straight, or through what can be cut. */
export interface Place {
  /** `127.0.0.1:port` */
  readonly listens: string;
  readonly reached: string;
  /** The URL of a Postgres. */
  readonly postgres: string;
}

export interface Leading {
  /** Which of the coordinators it is, counted from 0. */
  readonly at: number;
  readonly epoch: number;
}

const CONFIG = "rollout.toml";
/** As the unit of this repository for systemd says. */
const RESTART_MS = 1_000;

export class Coordinators {
  readonly #places: readonly Place[];
  readonly #host: LocalLauncher;
  readonly #variables: Variables;
  readonly #present = new Map<number, Member>();
  readonly #members: Member[] = [];
  readonly #workers = new Map<number, LocalLauncher>();
  readonly #kept = new Set<Member>();
  #restarts = 0;
  #isOver = false;

  private constructor(places: readonly Place[], host: LocalLauncher, variables: Variables) {
    [this.#places, this.#host, this.#variables] = [places, host, variables];
  }

  /** Everything that they need, and none of them. `variables`: settings of all members. */
  static async prepare(places: readonly Place[], variables: Variables = {}): Promise<Coordinators> {
    const host = new LocalLauncher("coordinators");
    await host.prepare();
    const group = new Coordinators(places, host, variables);
    const addresses = places.map(({ reached }) => reached).join();
    const init = group.#launch(host, "init", ["init", "--coordinators", addresses]);
    if ((await init.ended) !== 0) throw new Error(`rollout init failed: ${init.lastWords}`);
    return group;
  }

  /** Starts this one, or starts it again. */
  start(at: number): Member {
    const { listens, reached, postgres } = this.#place(at);
    const config = `${reached.replace(":", "-")}/${CONFIG}`;
    const own = { ROLLOUT_STORAGE_URL: postgres, ROLLOUT_TRANSPORT_LISTEN_ADDR: listens };
    const words = ["coordinator", "run", "--config", config];
    const member = this.#launch(this.#host, `coordinator ${at + 1}`, words, own);
    this.#present.set(at, member);
    return member;
  }

  /** Starts it, and again whenever it ends by itself, a moment later, as systemd does. */
  keep(at: number): Member {
    const member = this.start(at);
    this.#kept.add(member);
    void member.ended
      .then(() => sleep(systemClock, RESTART_MS))
      .then(() => {
        if (!this.#kept.has(member) || this.#isOver) return;
        this.#restarts++;
        this.keep(at);
      });
    return member;
  }

  /** By force; it does not come back by itself. */
  async kill(at: number): Promise<void> {
    const member = this.member(at);
    this.#kept.delete(member);
    await member.kill();
  }

  /** How often one that was kept has ended by itself. */
  get restarts(): number {
    return this.#restarts;
  }

  member(at: number): Member {
    const member = this.#present.get(at);
    if (member === undefined) throw new Error(`coordinator ${at + 1} was not started`);
    return member;
  }

  /** The first of them that leads under a later epoch than this. */
  async untilLed(after = -1): Promise<Leading> {
    const claims = this.#places.map(async (_, at) => {
      const { epoch } = await this.member(at).event("coordinator_leading", (event) => event.epoch > after);
      return { at, epoch };
    });
    return Promise.any(claims);
  }

  /** The one that came to lead last among those that run, and leads as far as it has said. */
  get leading(): Leading | undefined {
    const claims = [...this.#present].flatMap(([at, member]) => {
      const [claim] = member.isRunning ? member.seen("coordinator_leading").slice(-1) : [];
      return claim === undefined ? [] : [{ at, epoch: claim.epoch }];
    });
    return claims.toSorted((one, other) => other.epoch - one.epoch)[0];
  }

  /** It stands by for another that leads. */
  async untilFollowing(at: number): Promise<void> {
    await this.member(at).event("coordinator_following");
  }

  /** A worker that knows nothing but the bundle, and what it has learned if it is started again; it may not have joined yet. */
  async startWorker(number: number, variables: Variables): Promise<Member> {
    const host = this.#workers.get(number) ?? new LocalLauncher(`worker-${number}`);
    if (!this.#workers.has(number)) {
      this.#workers.set(number, host);
      await host.prepare();
      await host.write("enrolment.pem", await this.#host.read("data/tls/enrolment.pem"));
    }
    return this.#launch(
      host,
      `worker ${number}`,
      ["worker", "run", "--enrolment", "enrolment.pem"],
      variables,
    );
  }

  /** As an operator's commands have it. */
  client(): Promise<RolloutClient> {
    return RolloutClient.connect({ config: this.#host.path(CONFIG) });
  }

  get lastWords(): string {
    return this.#members.map(({ lastWords }) => lastWords).join("\n");
  }

  /** Leaves nothing behind on this machine, whatever has happened before. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#members.map((member) => member.kill()));
    await Promise.all([this.#host, ...this.#workers.values()].map((host) => host.remove()));
  }

  #place(at: number): Place {
    const place = this.#places[at];
    if (place === undefined) throw new Error(`there is no coordinator ${at + 1}`);
    return place;
  }

  #launch(host: LocalLauncher, name: string, words: readonly string[], variables: Variables = {}): Member {
    if (this.#isOver) throw new Error("it is over: nothing is started any more");
    const all = { ...this.#variables, ...variables, ROLLOUT_LOG_FORMAT: "json" };
    const member = new Member(name, host.start(words, all));
    this.#members.push(member);
    return member;
  }
}
