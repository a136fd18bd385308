// The durable actors of a run on the page of `rollout inspect`, as one program among those that connect: each actor with the chart of its type, or of
// the machine within it that it is, the state that it is in lit, and its last events. Told by push: the run says when anything has changed, and
// only what has is read.
//
// Keeps true: nothing is asked while no page looks; what is shown is bounded as for programs of strangers, and what is left out is said; an
// actor whose parent has left it is not shown.
import type { AnyStateMachine } from "xstate";
import { actorPlace } from "../base/actor-address.ts";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import type { NamedMachine } from "../charts/named-machine.ts";
import { UnreadableMachine } from "../charts/read-machine.ts";
import { listFullKeys } from "../client/keys.ts";
import { troubleWaitMs } from "../client/trouble.ts";
import { Drawing } from "../inspector/drawing.ts";
import type { Programs as ProgramsDoor } from "../inspector/news-source.ts";
import type { ChartPicture, PageNews } from "../inspector/page-messages.ts";
import type { ProgramView } from "../inspector/program.ts";
import { PROGRAM_LIMITS } from "../inspector/program-limits.ts";
import { Programs } from "../inspector/programs.ts";
import { readMessage } from "../inspector/stately-messages.ts";
import type { Logger } from "../observe/log.ts";
import { readActorState } from "../runtime/actor-state.ts";
import type { ActorState } from "../runtime/actor-state.ts";
import { machineOfActor } from "./actor-charts.ts";
import { eventOf } from "./actor-now.ts";
import type { RolloutClient } from "./rollout-client.ts";

export interface ShownActorsPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Told apart by the names of their types. */
  readonly machines: readonly NamedMachine[];
  readonly open: () => Promise<RolloutClient>;
}

interface Seen {
  readonly key: string;
  readonly state: ActorState;
  /** The commit of the state. */
  readonly commit: number;
}

interface Shown {
  readonly chart: string;
  readonly commit: number;
}

/** As messages of `@statelyai/inspect` say it. */
const PROTOCOL = "0.4.0";
/** Numbers of the run that change are collected for so long. */
const COLLECT_MS = 500;
/** Actors of one look whose last event is asked for; of more at once their states alone are told. */
const EVENTS_TOLD = 20;

export class ShownActors implements ProgramsDoor {
  readonly #ports: ShownActorsPorts;
  readonly #drawing: Drawing;
  readonly #programs: Programs;
  /** By the type, and the source of a machine within it. */
  readonly #definitions = new Map<string, string | undefined>();
  readonly #view: ProgramView;
  readonly #known = new Map<string, Shown>();
  readonly #final = new Set<string>();
  /** Known ones by the key of their parent. */
  readonly #below = new Map<string, Set<string>>();
  #fromCommit = 0;

  constructor(ports: ShownActorsPorts) {
    const { clock, log } = ports;
    this.#ports = ports;
    this.#drawing = new Drawing({ clock });
    this.#programs = new Programs({ clock, log, drawing: this.#drawing, idPrefix: "actors" });
    this.#view = this.#programs.connect("durable actors of the run");
  }

  whole(): readonly PageNews[] {
    return this.#programs.whole();
  }

  follow(told: (news: PageNews) => void): () => void {
    const leaving = new AbortController();
    const end = this.#programs.follow(told);
    void this.#keepLooking(leaving.signal);
    return () => {
      leaving.abort();
      end();
    };
  }

  definition(programId: string, hash: string): Promise<ChartPicture | undefined> {
    return this.#programs.definition(programId, hash);
  }

  async close(): Promise<void> {
    this.#programs.close();
    await this.#drawing.close();
  }

  async #keepLooking(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#ports;
    for (let tried = 1; !signal.aborted; tried++) {
      try {
        await this.#look(signal, () => (tried = 0));
      } catch (error) {
        if (isOver(signal)) return;
        const trouble = error instanceof RolloutError ? error : undefined;
        if (trouble === undefined) log.error("the actors could not be asked for", { err: error });
        await sleep(clock, troubleWaitMs(trouble, Math.max(1, tried), random), signal);
      }
    }
  }

  /** Until the signal aborts. */
  async #look(signal: AbortSignal, onAnswer: () => void): Promise<void> {
    const client = await this.#ports.open();
    try {
      const news = client.news(COLLECT_MS);
      for (;;) {
        const { status } = await news.next(signal);
        onAnswer();
        await this.#tellChanged(client, status.keys?.total ?? 0);
      }
    } finally {
      client.close();
    }
  }

  /** `total`: actors of the run. Where there are fewer than are shown some were retired, which no list of what has changed says. */
  async #tellChanged(client: RolloutClient, total: number): Promise<void> {
    if (total < this.#known.size) this.#fromCommit = 0;
    const unseen = this.#fromCommit === 0 ? new Set(this.#known.keys()) : new Set<string>();
    let next = this.#fromCommit;
    const changed: Seen[] = [];
    const wanted = { fromCommit: this.#fromCommit, onCommit: (commit: number) => void (next = commit) };
    for await (const { key, state: bytes, stateCommit: commit = 0 } of listFullKeys(
      client.keyCalls,
      wanted,
    )) {
      const state = bytes && readActorState(bytes);
      if (state === undefined) continue;
      unseen.delete(key);
      const known = this.#known.get(key);
      const isSame = known !== undefined && known.chart === chartNameOf(state);
      if (!isSame) this.#introduce({ key, state, commit });
      else if (known.commit !== commit) changed.push({ key, state, commit });
    }
    this.#fromCommit = next;
    for (const key of unseen) this.#leave(key);
    for (const [at, seen] of changed.entries())
      this.#tell(seen, at < EVENTS_TOLD ? await lastEventOf(client, seen.key) : "several events");
  }

  #introduce(seen: Seen): void {
    const { key, state } = seen;
    if (!this.#known.has(key) && this.#known.size >= PROGRAM_LIMITS.actors && !this.#makeRoom()) {
      this.#programs.complain(this.#view, "actors", `only ${PROGRAM_LIMITS.actors} actors are shown`);
      return;
    }
    const parent = actorPlace(key)?.parent;
    const definition = this.#definitionOf(state);
    this.#take({
      ...{ type: "@xstate.actor", sessionId: key, name: key, snapshot: state.snapshot },
      ...(parent !== undefined && { parentId: parent }),
      ...(definition !== undefined && { definition }),
    });
    if (parent !== undefined) this.#below.set(parent, (this.#below.get(parent) ?? new Set()).add(key));
    this.#note(seen);
  }

  #tell(seen: Seen, event: string): void {
    const { key, state } = seen;
    this.#take({
      type: "@xstate.snapshot",
      sessionId: key,
      event: { type: event },
      snapshot: state.snapshot,
    });
    this.#note(seen);
  }

  #note({ key, state, commit }: Seen): void {
    this.#known.set(key, { chart: chartNameOf(state), commit });
    if (state.snapshot.status === "active") this.#final.delete(key);
    else this.#final.add(key);
    for (const child of this.#below.get(key) ?? []) {
      const { kind, hasEnded = false } = state.children?.[actorPlace(child)?.name ?? ""] ?? {};
      const isThere = kind === "machine" && !hasEnded;
      // One of a later commit may have begun since the parent was read.
      if (!isThere && (this.#known.get(child)?.commit ?? 0) <= commit) this.#leave(child);
    }
  }

  #leave(key: string): void {
    this.#known.delete(key);
    this.#final.delete(key);
    this.#below.get(actorPlace(key)?.parent ?? "")?.delete(key);
    for (const child of this.#below.get(key) ?? []) this.#leave(child);
    this.#below.delete(key);
    this.#programs.leave(this.#view, key);
  }

  /** Takes away one that is final, if there is one. */
  #makeRoom(): boolean {
    const [key] = this.#final;
    if (key !== undefined) this.#leave(key);
    return key !== undefined;
  }

  /** Undefined where the code has no such machine, or none that can be drawn. */
  #definitionOf(state: ActorState): string | undefined {
    const name = chartNameOf(state);
    if (!this.#definitions.has(name)) this.#definitions.set(name, this.#readDefinition(state));
    return this.#definitions.get(name);
  }

  #readDefinition(state: ActorState): string | undefined {
    const type = this.#ports.machines.find(({ name }) => name === state.type);
    try {
      const found = type && machineOfActor(type, state);
      return found && definitionOf(found.machine);
    } catch (error) {
      if (!(error instanceof UnreadableMachine)) throw error;
      this.#programs.complain(this.#view, `read ${chartNameOf(state)}`, error.message);
      return undefined;
    }
  }

  /** By the way of strangers' messages, so that the same bounds hold. */
  #take(message: object): void {
    const createdAt = String(Math.round(this.#ports.clock.wallMs()));
    const read = readMessage(JSON.stringify({ _version: PROTOCOL, createdAt, ...message }));
    if (read.kind === "strange") this.#programs.complain(this.#view, "strange", read.why);
    else this.#programs.take(this.#view, read);
  }
}

async function lastEventOf(client: RolloutClient, key: string): Promise<string> {
  const [last] = (await client.keyCalls.listKeyHistory({ key, limit: 1 })).results;
  return last === undefined ? "an event" : eventOf(last).event.type;
}

function chartNameOf({ type, source = "" }: ActorState): string {
  return `${type}/${source}`;
}

/** It may abort while something is awaited. */
function isOver({ aborted }: AbortSignal): boolean {
  return aborted;
}

/** The machine's own configuration without its context, with functions by their names. */
function definitionOf({ config }: AnyStateMachine): string {
  return JSON.stringify({ ...config, context: undefined }, (_, value: unknown) =>
    typeof value === "function" ? { type: value.name } : value,
  );
}
