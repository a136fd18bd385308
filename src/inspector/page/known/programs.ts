// Programs that speak to the page from outside, as far as the page knows them: their actors and the last of their log.
//
// Keeps true: however much a program says, what is kept of it is bounded.
import type { ActorRow, LogEntry, Program, ProgramNews } from "../../page-messages.ts";
import type { Move } from "./playback.ts";

/** @internal */
export const LOG_KEPT = 2_000;
/** When so many more have come the oldest go, all at once: an entry then costs no shifting of others. */
const SLACK = 500;

export interface KnownProgram {
  readonly program: Program;
  readonly actors: Map<string, ActorRow>;
  readonly log: LogEntry[];
  dropped: number;
}

export class KnownPrograms {
  readonly #programs = new Map<string, KnownProgram>();

  get all(): readonly KnownProgram[] {
    return [...this.#programs.values()];
  }

  find(programId: string): KnownProgram | undefined {
    return this.#programs.get(programId);
  }

  clear(): void {
    this.#programs.clear();
  }

  take(news: ProgramNews): void {
    switch (news.kind) {
      case "program": {
        const known = this.#programs.get(news.program.program_id);
        const { actors, log, dropped } = known ?? {
          actors: new Map<string, ActorRow>(),
          log: [],
          dropped: 0,
        };
        this.#programs.set(news.program.program_id, { program: news.program, actors, log, dropped });
        return;
      }
      case "program_gone":
        this.#programs.delete(news.program_id);
        return;
      case "actors": {
        const actors = this.#programs.get(news.program_id)?.actors;
        if (news.anew) actors?.clear();
        for (const row of news.changed) actors?.set(row.session_id, row);
        for (const sessionId of news.gone) actors?.delete(sessionId);
        return;
      }
      case "log": {
        const known = this.#programs.get(news.program_id);
        if (known === undefined) return;
        const last = known.log.at(-1)?.number ?? -Infinity;
        known.log.push(...news.entries.filter(({ number }) => number > last));
        known.dropped += news.dropped;
        if (known.log.length > LOG_KEPT + SLACK) known.log.splice(0, known.log.length - LOG_KEPT);
      }
    }
  }
}

/** The log of one actor as moves of its chart: an event leaves the state as it is until the snapshot that follows it. */
export function movesOf(log: readonly LogEntry[], sessionId: string): Move[] {
  let value: string | undefined;
  let pending = "";
  return log
    .filter((entry) => entry.session_id === sessionId)
    .map(({ number, at_ms, kind, event, value: after, detail }) => {
      const from = value ?? "";
      if (kind === "snapshot") value = after;
      else pending = event;
      const cause = event === "" ? pending : event;
      return {
        ...{ number, atMs: at_ms, from, to: value ?? "", detail },
        ...{ event: kind === "snapshot" ? `→ ${cause}` : event, cause, isMove: kind === "snapshot" },
      };
    });
}
