// The durable actors of a run on the page of `rollout inspect`, as one program among those that connect: each actor with the chart of its type, the
// state that it is in lit, and its last events. Told by push: the run says when anything has changed, and only what has is read.
//
// Keeps true: nothing is asked while no page looks; what is shown is bounded as for programs of strangers, and what is left out is said.
import type { AnyStateMachine } from "xstate";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import type { NamedMachine } from "../charts/named-machine.ts";
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
  readonly #definitions: ReadonlyMap<string, string>;
  readonly #view: ProgramView;
  readonly #known = new Set<string>();
  #fromCommit = 0;

  constructor(ports: ShownActorsPorts) {
    const { clock, log, machines } = ports;
    this.#ports = ports;
    this.#drawing = new Drawing({ clock });
    this.#programs = new Programs({ clock, log, drawing: this.#drawing, idPrefix: "actors" });
    this.#definitions = new Map(machines.map(({ name, machine }) => [name, definitionOf(machine)]));
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
        await news.next(signal);
        onAnswer();
        await this.#tellChanged(client);
      }
    } finally {
      client.close();
    }
  }

  async #tellChanged(client: RolloutClient): Promise<void> {
    let next = this.#fromCommit;
    const changed: { readonly key: string; readonly state: ActorState }[] = [];
    const wanted = { fromCommit: this.#fromCommit, onCommit: (commit: number) => void (next = commit) };
    for await (const { key, state: bytes } of listFullKeys(client.keyCalls, wanted)) {
      const state = bytes && readActorState(bytes);
      if (state === undefined) continue;
      if (!this.#known.has(key) && this.#known.size >= PROGRAM_LIMITS.actors) {
        this.#programs.complain(this.#view, "actors", `only ${PROGRAM_LIMITS.actors} actors are shown`);
        continue;
      }
      if (this.#known.has(key)) changed.push({ key, state });
      else this.#introduce(key, state);
    }
    this.#fromCommit = next;
    for (const [at, { key, state }] of changed.entries())
      this.#tell(key, state, at < EVENTS_TOLD ? await lastEventOf(client, key) : "several events");
  }

  #introduce(key: string, { type, snapshot }: ActorState): void {
    this.#known.add(key);
    const parent = key.slice(0, key.lastIndexOf("/"));
    const definition = this.#definitions.get(type);
    this.#take({
      ...{ type: "@xstate.actor", sessionId: key, name: key, snapshot },
      ...(this.#known.has(parent) && { parentId: parent }),
      ...(definition !== undefined && { definition }),
    });
  }

  #tell(key: string, { snapshot }: ActorState, event: string): void {
    this.#take({ type: "@xstate.snapshot", sessionId: key, event: { type: event }, snapshot });
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

/** It may abort while something is awaited. */
function isOver({ aborted }: AbortSignal): boolean {
  return aborted;
}

/** The machine's own configuration, with functions by their names. */
function definitionOf({ config }: AnyStateMachine): string {
  return JSON.stringify(config, (_, value: unknown) =>
    typeof value === "function" ? { type: value.name } : value,
  );
}
