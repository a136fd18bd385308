// `rollout inspect` put together: a server of the page, and of what it is to show.
import { systemClock } from "../base/clock.ts";
import { builtFile } from "../base/own-file.ts";
import { systemRandom } from "../base/random.ts";
import { OWN_NAMES } from "../charts/named-machine.ts";
import type { NamedMachine } from "../charts/named-machine.ts";
import type { HintedLine } from "../cli/shell-words.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { newToken } from "../inspector/entrance.ts";
import { Feed } from "../inspector/feed.ts";
import { Hub } from "../inspector/hub.ts";
import type { Programs } from "../inspector/news-source.ts";
import { builtChart, PAGE_FOLDER, pageFile } from "../inspector/page-files.ts";
import type { Hello } from "../inspector/page-messages.ts";
import type { ProgramListener } from "../inspector/program-listener.ts";
import { startPageServer } from "../inspector/page-server.ts";
import type { Logger } from "../observe/log.ts";
import { InspectedRun } from "./inspected-run.ts";
import { refuseEndedRun } from "./local-run/ended-run.ts";
import { RolloutClient } from "./rollout-client.ts";
import { ShownActors } from "./shown-actors.ts";

/** A run that is shown. */
export interface ShownRun {
  /** As it is at the start. */
  readonly config: ClientConfig;
  /** Reads it anew. */
  readonly load: () => Promise<ClientConfig>;
  readonly line: HintedLine;
}

export interface InspectionOptions {
  /** Undefined: none. */
  readonly run?: ShownRun;
  /** Programs that connect to it, and the `host:port` where they do; undefined when they may not. */
  readonly programs?: { readonly news: Programs; readonly listensAt: string };
  /** Machines of the durable actors of the run, by their types; undefined: these are not shown. */
  readonly machines?: readonly NamedMachine[] | undefined;
  /** 0 takes a free one. */
  readonly port: number;
  readonly version: string;
  readonly log: Logger;
}

export interface Inspection {
  /** With the token. */
  readonly url: string;
  /** Resolves when the port is free. */
  close(): Promise<void>;
}

/** Fails with listen_failed. The coordinator need not be there. */
export async function startInspection({
  run,
  programs,
  machines,
  port,
  version,
  log,
}: InspectionOptions): Promise<Inspection> {
  const [clock, random] = [systemClock, systemRandom];
  const inspected = run && inspectedRun(run, log);
  const hub = inspected && new Hub({ source: inspected, clock, random, log });
  const hello = (): Hello => ({
    ...{ kind: "hello", version, charts: OWN_NAMES },
    run: run === undefined ? null : { run_id: run.config.runId, addresses: addressesOf(run.config) },
    listens_at: programs?.listensAt ?? null,
    now_ms: Math.round(clock.wallMs()),
  });
  const token = newToken(random);
  const folder = builtFile(PAGE_FOLDER);
  const actors = run && machines && shownActors(run, machines, log);
  const sources = [hub, programs?.news, actors].filter((source) => source !== undefined);
  const server = await startPageServer({
    ...{ listenAddr: `127.0.0.1:${port}`, setting: "--port", token, log },
    feed: new Feed({ sources, hello, clock }),
    operator: inspected,
    file: (name) => pageFile(folder, name),
    chart: (name) => builtChart(folder, name),
    definition: async (programId, hash) =>
      (await programs?.news.definition(programId, hash)) ?? (await actors?.definition(programId, hash)),
  });
  return {
    url: `http://${server.address}/?token=${token}`,
    close: async () => {
      await server.close();
      await actors?.close();
      inspected?.close();
    },
  };
}

/** Programs connect to `listensAt` from now on. Fails with listen_failed. */
export async function listenForPrograms(port: number, log: Logger): Promise<ProgramListener> {
  // It is not loaded for a page alone.
  const { ProgramListener } = await import("../inspector/program-listener.ts");
  const [clock, random] = [systemClock, systemRandom];
  return ProgramListener.open({
    ...{ listenAddr: `127.0.0.1:${port}`, setting: "--listen-port", clock, random, log },
  });
}

function shownActors({ load }: ShownRun, machines: readonly NamedMachine[], log: Logger): ShownActors {
  const open = async (): Promise<RolloutClient> => openRun(await load(), log);
  return new ShownActors({ clock: systemClock, random: systemRandom, log, machines, open });
}

function openRun(config: ClientConfig, log: Logger): Promise<RolloutClient> {
  return RolloutClient.open(config, log, () => refuseEndedRun(config.source));
}

function inspectedRun({ load, line }: ShownRun, log: Logger): InspectedRun {
  return new InspectedRun({
    load,
    open: (config) => openRun(config, log),
    line,
  });
}

function addressesOf({ worker: { coordinatorAddr } }: ClientConfig): readonly string[] {
  return typeof coordinatorAddr === "string" ? [coordinatorAddr] : coordinatorAddr;
}
