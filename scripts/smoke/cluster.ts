// The cluster of the smoke: a coordinator on the first host, a worker on each of the others, each with a configuration file and
// a directory of its own, over mutual TLS with a development CA. The workers' hosts are given what any other machine would be
// given: the address and an enrolment bundle.
import { systemClock } from "../../src/base/clock.ts";
import type { RunId } from "../../src/base/ids.ts";
import { newUlid } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { Launcher, Variables } from "./launcher.ts";
import { Member } from "./member.ts";

export interface SmokeWorker {
  readonly number: number;
  readonly id: string;
  readonly member: Member;
}

/** A line of an execution's journal. */
export interface Execution {
  readonly item: string;
  readonly attempt: number;
  readonly worker: string;
}

const JOURNAL = "journal";

export class SmokeCluster {
  readonly #head: Launcher;
  readonly #hosts: readonly Launcher[];
  readonly #listen: string;
  readonly #runId = newUlid<RunId>(systemClock, systemRandom);
  readonly #members: Member[] = [];
  #address = "";

  /** `listen` is where the coordinator listens; with port 0, on any that is free. */
  constructor(head: Launcher, hosts: readonly Launcher[], listen: string) {
    this.#head = head;
    this.#hosts = hosts;
    this.#listen = listen;
  }

  /** A coordinator that leads. */
  async startCoordinator(): Promise<Member> {
    await Promise.all([this.#head, ...this.#hosts].map((host) => host.prepare()));
    const file = [
      `run_id = "${this.#runId}"`,
      `[storage]\npath = "./data/rollout.db"`,
      `[transport]\nlisten_addr = "${this.#listen}"\ntls_dir = "./data/tls"`,
    ];
    await this.#head.write("rollout.toml", file.join("\n"));
    const coordinator = this.#start(this.#head, "coordinator", ["coordinator", "run"], {});
    const { address } = await coordinator.event("coordinator_leading");
    this.#address = `${this.#head.address}:${address.replace(/^.*:/, "")}`;
    return coordinator;
  }

  /** `host:port`, as the workers reach it. */
  get address(): string {
    return this.#address;
  }

  /** One on each of their hosts, all of which say who they are; `settings` by number. */
  async startWorkers(settings: (worker: number) => Variables): Promise<SmokeWorker[]> {
    await this.command("ca", "issue", "--out", "enrolment.pem");
    const enrolment = await this.#head.read("enrolment.pem");
    return Promise.all(
      this.#hosts.map(async (host, number) => {
        const file = [
          `run_id = "${this.#runId}"`,
          `[worker]\ncoordinator_addr = "${this.#address}"\nenrolment = "./enrolment.pem"\nstate_dir = "./state"`,
          `[mock]\njournal = "./${JOURNAL}"`,
        ];
        await host.write("rollout.toml", file.join("\n"));
        await host.write("enrolment.pem", enrolment);
        const member = this.#start(host, `worker ${number + 1}`, ["worker", "run"], settings(number));
        return { number, member, id: await member.workerId() };
      }),
    );
  }

  /** Submits these lines, and says that nothing more will come when `isLast`. */
  async submit(lines: readonly string[], isLast: boolean): Promise<void> {
    await this.#head.write("items.jsonl", `${lines.join("\n")}\n`);
    await this.command("submit", "items.jsonl", "--json", ...(isLast ? ["--seal"] : []));
  }

  /** How many items there are that have no result yet, and in which state the run is. */
  async status(): Promise<{ readonly left: number; readonly state: string }> {
    const said = JSON.parse(await this.command("status", "--json")) as Record<string, unknown>;
    return {
      left: Number(said["pending"]) + Number(said["running"]),
      state: String(said["state"]),
    };
  }

  /** The output of a command that is run beside the coordinator. Throws when it does not end well. */
  async command(...words: string[]): Promise<string> {
    const { child } = this.#head.start(words, {
      ROLLOUT_WORKER_COORDINATOR_ADDR: this.#address,
    });
    let [said, complaint] = ["", ""];
    child.stdout?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject).once("close", resolve);
    });
    if (code === 0) return said;
    throw new Error(`\`rollout ${words.join(" ")}\` ended with ${String(code)}: ${complaint.trim()}`);
  }

  /** Every execution that began, by what the executions themselves wrote. */
  async executions(): Promise<Execution[]> {
    const journals = await Promise.all(this.#hosts.map((host) => host.read(JOURNAL)));
    const lines = journals.join("").split("\n");
    return lines
      .filter((line) => line !== "")
      .map((line) => {
        const [item = "", attempt, worker = ""] = line.split(" ");
        return { item, attempt: Number(attempt), worker };
      });
  }

  get lastWords(): string {
    return this.#members.map(({ lastWords }) => lastWords).join("\n");
  }

  /** Leaves nothing behind, whatever has happened before. */
  async end(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.kill()));
    await Promise.all([this.#head, ...this.#hosts].map((host) => host.remove()));
  }

  #start(host: Launcher, name: string, words: readonly string[], variables: Variables): Member {
    const member = new Member(name, host.start(words, { ...variables, ROLLOUT_LOG_FORMAT: "json" }));
    this.#members.push(member);
    return member;
  }
}
