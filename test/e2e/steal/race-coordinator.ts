// A coordinator whose every hearing is somebody else's decision: what workers say to its service waits, by worker, until it is
// told to hear the next of it, and what it says waits at the worker until that is told to.
import assert from "node:assert/strict";
import type { HandlerContext } from "@connectrpc/connect";
import { systemClock } from "../../../src/base/clock.ts";
import type { WorkerId } from "../../../src/base/ids.ts";
import type { Input } from "../../../src/coordinator/turn/input.ts";
import { workService } from "../../../src/coordinator/rpc/work-service.ts";
import type { SessionInput, SessionPort } from "../../../src/coordinator/turn/session-frame.ts";
import type { SessionRequest, SessionResponse } from "../../../src/gen/rollout/v1/work_pb.ts";
import type { World } from "../../support/world.ts";

/** The coordinator's frames on one stream: each entry makes the stream deliver it. */
export interface Downlink {
  readonly frames: { readonly name: string; readonly deliver: () => void }[];
}

interface Link extends Downlink {
  readonly port: SessionPort;
  readonly workerId: WorkerId;
}

export class RaceCoordinator {
  readonly #world: World;
  readonly #heard = new Map<WorkerId, SessionInput[]>();
  #links = new Map<SessionPort, Link>();
  #stopping = new AbortController();
  #leaderships = 0;
  #service: ReturnType<typeof workService>;

  constructor(world: World) {
    this.#world = world;
    this.#service = this.#lead();
  }

  /** Opens a stream to whoever leads now. */
  open(requests: AsyncIterable<SessionRequest>, context: HandlerContext): AsyncIterable<SessionResponse> {
    // The service of ours gives messages, not what messages are made from.
    return this.#service.session(requests, context) as AsyncIterable<SessionResponse>;
  }

  /** Whether something that this worker said has not been heard yet. */
  hears(worker: WorkerId): boolean {
    return (this.#heard.get(worker)?.length ?? 0) > 0;
  }

  async hear(worker: WorkerId): Promise<void> {
    await this.#world.step(this.#nextOf(worker));
  }

  /** Frames on their way to the worker on the stream that it has now. */
  downlinkOf(worker: WorkerId): Downlink | undefined {
    return [...this.#links.values()].findLast(({ workerId }) => workerId === worker);
  }

  /** The worker's stream is cut: what is on its way down is lost, and what is on its way up as well, or late. */
  forget(worker: WorkerId, { keepsInbox }: { readonly keepsInbox: boolean }): void {
    for (const link of this.#links.values()) if (link.workerId === worker) link.frames.length = 0;
    if (keepsInbox) return;
    const ended = this.#heard.get(worker)?.filter(({ kind }) => kind === "sessionEnded") ?? [];
    this.#heard.set(worker, ended);
  }

  /** Another process leads over the same store. */
  async restart(): Promise<void> {
    this.#stopping.abort();
    this.#stopping = new AbortController();
    this.#leaderships++;
    // The streams of before are over; what they still say is said to nobody.
    this.#links = new Map();
    this.#heard.clear();
    await this.#world.lead();
    this.#service = this.#lead();
    await this.#world.settle();
  }

  /** It dies between the commit of a turn and its effects. */
  async crashAfterHearing(worker: WorkerId): Promise<void> {
    this.#world.answerLate();
    await this.#world.step(this.#nextOf(worker));
    await this.restart();
  }

  get fingerprint(): string {
    const sessions = [...this.#world.state.workers.values()].map(({ session }) =>
      session === undefined ? "-" : `${session.credit} ${session.isRecalled} ${session.recalledAtMs}`,
    );
    const waiting = [...this.#heard].map(([worker, inputs]) => `${worker}: ${inputs.map(nameOf).join(", ")}`);
    return [...sessions, ...waiting.sort()].join("\n");
  }

  #nextOf(worker: WorkerId): SessionInput {
    const input = this.#heard.get(worker)?.shift();
    assert(input !== undefined, "there is something to hear");
    return input;
  }

  #lead(): ReturnType<typeof workService> {
    const leadership = this.#leaderships;
    const push = (input: Input): boolean => leadership === this.#leaderships && this.#take(input);
    return workService(this.#world.leader(push, { stopping: this.#stopping.signal }), systemClock);
  }

  #take(input: Input): boolean {
    assert("port" in input, "only sessions speak to it");
    const { workerId } = input;
    const waiting = this.#heard.get(workerId) ?? [];
    waiting.push({ ...input, port: this.#linkOf(input).port });
    this.#heard.set(workerId, waiting);
    return true;
  }

  /** In place of the stream, so that nothing is said on it before its time. */
  #linkOf({ port: stream, workerId }: SessionInput): Link {
    const known = this.#links.get(stream);
    if (known !== undefined) return known;
    const frames: Link["frames"] = [];
    const port: SessionPort = {
      send: (frame) => void frames.push({ name: frame.kind, deliver: () => stream.send(frame) }),
      end: () => void frames.push({ name: "end", deliver: () => stream.end() }),
    };
    const link = { port, workerId, frames };
    this.#links.set(stream, link);
    return link;
  }
}

function nameOf(input: SessionInput): string {
  switch (input.kind) {
    case "handedBack":
      return `handedBack ${input.attempts.map(({ id, attempt }) => `${id[0]}/${attempt}`).join(" ")}`;
    case "results":
      return `results ${input.reports.map(({ id, attempt }) => `${id[0]}/${attempt}`).join(" ")}`;
    case "hello":
      return `hello ${input.held.map(({ id, attempt }) => `${id[0]}/${attempt}`).join(" ")}`;
    case "credit":
      return `credit ${input.more}`;
    case "partitionLoaded":
    case "partitionsWritten":
    case "report":
    case "checkpoints":
    case "withdrawCredit":
    case "sessionEnded":
      return input.kind;
  }
}
