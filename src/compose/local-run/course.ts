// The course of a local run, from the start of its coordinator to the end of its last process. Keeps true: workers leave before
// the coordinator, so that what they still finish is recorded and written; no process is left, however it ends.
import { sleep } from "../../base/clock.ts";
import { RolloutError, failure } from "../../base/errors.ts";
import { number } from "../../cli/render/number.ts";
import { missingText } from "../../cli/results/result-sink.ts";
import type { RunStatus } from "../../client/run-status.ts";
import type { Submitted } from "../../client/submit.ts";
import { resolveConfig } from "../../config/resolve.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import { TOPICS } from "../../observe/events.ts";
import { silentLogger } from "../../observe/log.ts";
import { RolloutClient } from "../rollout-client.ts";
import { BEGUN_BY_FILE, begunByText } from "./begun-by.ts";
import { Connection } from "./connection.ts";
import { CREW_FILE, crewText } from "./crew.ts";
import { writeFinished } from "./finished-record.ts";
import type { Finished } from "./finished-record.ts";
import { itemsOf } from "./local-input.ts";
import type { CheckedInput } from "./local-input.ts";
import { namedAddress } from "./named-address.ts";
import { ProgressWatch } from "./progress-watch.ts";
import type { LocalRunEnd, LocalRunPorts, LocalRunRequest, LocalRunSummary } from "./request.ts";
import { CURSOR_FILE } from "./recorded.ts";
import { ResultsWriter } from "./results-writer.ts";
import type { WriterOptions } from "./results-writer.ts";
import { localConfigText } from "./run-directory.ts";
import { shownPath } from "./shown-path.ts";
import type { RunDirectory } from "./run-directory.ts";
import { Supervisor } from "./supervisor.ts";

/** In place of how fast it goes, when it is over. */
const LAST_WORDS: Readonly<Record<LocalRunEnd["kind"], string | undefined>> = {
  complete: undefined,
  already: undefined,
  cancelled: "cancelled",
  interrupted: "interrupted",
  paused: "paused",
  helped: undefined,
  "given-up": "ended",
};
const PLUGIN_FILE = "plugin.toml";
/** Longer than a coordinator takes to come back. */
const LAST_PATIENCE_MS = 10_000;

/** Where the results of that run go, and how far they have got. */
export function writerOptionsOf(
  { files }: LocalRunRequest,
  directory: RunDirectory,
): Pick<WriterOptions, "files" | "cursorFile" | "runId"> {
  return { files, cursorFile: directory.file(CURSOR_FILE), runId: directory.runId };
}

export class Course {
  readonly #request: LocalRunRequest;
  readonly #ports: LocalRunPorts;
  readonly #directory: RunDirectory;
  readonly #input: CheckedInput;
  readonly #connection: Connection;
  /** For what is looked at again and again. */
  readonly #client: RolloutClient;
  /** For what has to be answered once: waits for a coordinator that is started again. */
  readonly #patientClient: RolloutClient;
  readonly #supervisor: Supervisor;
  readonly #watch: ProgressWatch;
  readonly #winding = new AbortController();
  #submitted: Submitted | undefined;
  #end: LocalRunEnd | undefined;
  #areWorkersStarted = false;
  #following: ReturnType<ResultsWriter["follow"]> | undefined;

  constructor(request: LocalRunRequest, ports: LocalRunPorts, directory: RunDirectory, input: CheckedInput) {
    const { clock, display, program, random } = ports;
    [this.#request, this.#ports, this.#directory, this.#input] = [request, ports, directory, input];
    this.#supervisor = new Supervisor({
      ...{ directory, program, clock },
      coordinatorWords: request.coordinatorWords,
      workerWords: request.workerWords,
      say: (sentence) => display.say(sentence),
      onAddress: (address) => this.#onAddress(address),
    });
    this.#connection = new Connection({ clock, random, log: silentLogger });
    const clientOver = (transport: Connection["transport"]): RolloutClient =>
      RolloutClient.over(
        {
          ...{ transport, itemBytesMax: request.input.lineBytesMax },
          close: () => this.#connection.close(),
          taskOf: () => Promise.resolve(request.task),
        },
        { clock, random },
      );
    this.#client = clientOver(this.#connection.transport);
    this.#patientClient = clientOver(this.#connection.patientTransport);
    this.#watch = new ProgressWatch({
      ...{ client: this.#client, display, clock, expected: input.items },
      slots: request.workers * request.slotsPerWorker,
    });
  }

  async perform(asked: Finished["asked"] | undefined): Promise<LocalRunSummary> {
    const { interrupted, onStarted } = this.#ports;
    onStarted({ killAll: () => this.#supervisor.kill(), end: () => this.#end });
    const ends = [
      interrupted.then((): LocalRunEnd => ({ kind: "interrupted" })),
      this.#supervisor.givenUp.then((reason): LocalRunEnd => ({ kind: "given-up", reason })),
    ];
    let writer: ResultsWriter | undefined;
    try {
      const begun = await Promise.race([this.#begin(), ...ends]);
      if ("kind" in begun) {
        this.#end = begun;
        return await this.#summary(begun);
      }
      writer = begun.writer;
      const paused = this.#watch.paused.then((reason): LocalRunEnd => ({ kind: "paused", reason }));
      const end = await Promise.race([this.#work(writer), paused, ...ends]);
      return await this.#windUp(end, writer, asked);
    } finally {
      this.#winding.abort();
      await this.#supervisor.stopWorkers();
      await this.#watch.stop();
      this.#client.close();
      await this.#supervisor.stopCoordinator();
      await writer?.abandon();
    }
  }

  /** A coordinator leads, and results have a place to go to. */
  async #begin(): Promise<{ readonly writer: ResultsWriter }> {
    const { display } = this.#ports;
    const directory = this.#directory;
    const { manifest, retryFailed } = this.#request;
    await directory.waitForEarlier(
      (holder) => display.say(`waiting for ${holder}, which an earlier run has left behind`),
      this.#winding.signal,
    );
    if (this.#winding.signal.aborted) throw failure("interrupted", {});
    if ("text" in manifest) await directory.write(PLUGIN_FILE, manifest.text);
    await directory.write(BEGUN_BY_FILE, begunByText(this.#request.again));
    await this.#writeConfig(await namedAddress(directory));
    await this.#supervisor.startCoordinator();
    const client = this.#patientClient;
    const { state, pauseReason, done, failed, setAside } = await client.status();
    directory.refuseLessThanRecorded(done + setAside);
    const writer = await ResultsWriter.open({
      ...writerOptionsOf(this.#request, directory),
      ...{ client: this.#client, setAside },
      onKept: (copies) =>
        display.say(
          `results of before, of which some stand in quarantine, are kept in ${copies.map(shownPath).join(" and ")}`,
        ),
    });
    if (writer.missing !== undefined) display.say(missingText(shownPath(writer.missing)));
    if (state === "cancelled") return { writer };
    if (state === "paused") {
      display.say(`the run was paused (${pauseReason ?? ""}); it goes on`);
      await client.resume();
    }
    if (retryFailed) {
      // Nobody works yet: these are all of them, also where the coordinator took them back and died before it could say so.
      await client.retry();
      const some = failed === 1 ? "1 failed item is" : `${number(failed)} failed items are`;
      display.say(`${some} tried again`);
      if (failed > 0) await writer.startAnew();
    }
    return { writer };
  }

  /** Submits, and writes results until there is nothing more to come. */
  async #work(writer: ResultsWriter): Promise<LocalRunEnd> {
    this.#watch.start();
    const { state, pending, running } = await this.#patientClient.status();
    if (state === "cancelled") return { kind: "cancelled" };
    if (pending + running > 0) await this.#startWorkers();
    const sealing = this.#submit().then(() => this.#patientClient.seal());
    this.#following = this.#follow(writer, sealing);
    try {
      const [how] = await Promise.all([this.#following, sealing]);
      if (how !== "end") return { kind: "interrupted" };
    } catch (error) {
      if (!(error instanceof RolloutError) || error.code !== "run_cancelled") throw error;
      return { kind: "cancelled" };
    }
    const { state: left } = await this.#patientClient.status();
    return { kind: left === "cancelled" ? "cancelled" : "complete" };
  }

  /** A run that was complete comes to its end at once, and to another one when there are new lines. */
  async #follow(writer: ResultsWriter, sealing: Promise<void>): ReturnType<ResultsWriter["follow"]> {
    const how = await writer.follow(this.#winding.signal);
    if (how !== "end") return how;
    await sealing;
    return writer.follow(this.#winding.signal);
  }

  async #submit(): Promise<void> {
    this.#submitted = await this.#patientClient.submit(itemsOf(this.#input), {
      reopen: true,
      onProgress: ({ added, known }) => {
        this.#watch.submitted(added + known);
        if (added > 0) void this.#startWorkers();
      },
    });
    const { added, known } = this.#submitted;
    // Lines that got lost on the way must not look like lines that are done.
    if (added + known !== this.#input.items)
      throw failure("input_changed", { file: this.#input.options.name });
    this.#watch.submitted(undefined);
  }

  async #startWorkers(): Promise<void> {
    if (this.#areWorkersStarted || this.#winding.signal.aborted) return;
    this.#areWorkersStarted = true;
    const { workers } = this.#request;
    const ids = await this.#directory.workerIds(workers);
    await this.#directory.write(CREW_FILE, await crewText({ workers, input: this.#input.digest }));
    await this.#supervisor.startWorkers(ids);
  }

  /** Workers leave first, so that what they still finish is recorded and written. */
  async #windUp(
    end: LocalRunEnd,
    writer: ResultsWriter,
    asked: Finished["asked"] | undefined,
  ): Promise<LocalRunSummary> {
    this.#end = end;
    const situations = {
      cancelled: "cancelled: it is ending",
      interrupted: "leaving: what runs may finish within 15 s; Ctrl-C again ends it at once",
      paused: "paused: this command ends with code 5 when what runs has finished, within 15 s",
      helped: "ending",
      "given-up": "ending",
    } as const;
    if (end.kind !== "complete" && end.kind !== "already") this.#watch.say(situations[end.kind]);
    if (end.kind !== "complete" && end.kind !== "cancelled") {
      this.#winding.abort();
      await this.#supervisor.stopWorkers();
      // Two readers would write everything twice.
      await this.#following?.catch(() => undefined);
      return this.#summary(end.kind === "given-up" ? end : await this.#catchUp(end, writer), writer);
    }
    if (end.kind === "cancelled") {
      const left = await this.#leaveCancelled(end, writer);
      if (left.kind === "given-up") return this.#summary(left, writer);
    }
    const summary = await this.#summary(end, writer);
    const { counts } = summary;
    if (counts === undefined || summary.end.kind === "given-up") return summary;
    await writer.finish(counts);
    const { done, failed, failedByClass, failureMessages } = counts;
    const { failedItem } = writer;
    if (asked !== undefined && end.kind === "complete" && (counts.setAside ?? 0) === 0)
      await writeFinished(this.#directory, {
        ...{ asked, done, failed, failedByClass, failureMessages, failedItem },
      });
    return { ...summary, failedItem };
  }

  async #leaveCancelled(end: LocalRunEnd, writer: ResultsWriter): Promise<LocalRunEnd> {
    this.#winding.abort();
    await this.#supervisor.stopWorkers();
    await this.#following?.catch(() => undefined);
    return this.#catchUp(end, writer);
  }

  /**
   * Results that were finished meanwhile are written as far as the coordinator gives them; the rest is when the run goes on. A coordinator that
   * cannot be kept alive is what the run ends with then.
   */
  async #catchUp(end: LocalRunEnd, writer: ResultsWriter): Promise<LocalRunEnd> {
    const hurry = new AbortController();
    const written = writer.catchUp(hurry.signal).catch((error: unknown) => {
      if (!(error instanceof RolloutError) || error.row.retry === "never") throw error;
    });
    const reason = await Promise.race([written.then(() => undefined), this.#supervisor.givenUp]);
    hurry.abort();
    await written;
    return reason === undefined ? end : { kind: "given-up", reason };
  }

  async #summary(wanted: LocalRunEnd, writer?: ResultsWriter): Promise<LocalRunSummary> {
    const { end, status } =
      writer === undefined ? { end: wanted, status: undefined } : await this.#lastStatus(wanted);
    const counts = await this.#watch.last(LAST_WORDS[end.kind], status);
    const { reassigned, elapsedMs } = this.#watch;
    return {
      end,
      directory: this.#directory.path,
      items: this.#input.items,
      counts,
      failedItem: writer?.failedItem,
      submitted: this.#submitted,
      reassigned,
      elapsedMs,
    };
  }

  /** A run that is over has to say so itself: without a coordinator that can be kept alive it has not. Any other end waits a moment. */
  async #lastStatus(
    end: LocalRunEnd,
  ): Promise<{ readonly end: LocalRunEnd; readonly status?: RunStatus | undefined }> {
    if (end.kind === "given-up") return { end, status: await this.#client.status().catch(() => undefined) };
    const isOver = end.kind === "complete" || end.kind === "cancelled";
    const hurry = new AbortController();
    if (!isOver) void sleep(this.#ports.clock, LAST_PATIENCE_MS, hurry.signal).then(() => hurry.abort());
    const asked = this.#patientClient.status({ signal: hurry.signal }).then(
      (status) => ({ end, status }),
      (error: unknown) => {
        if (isOver && !hurry.signal.aborted) throw error;
        return { end };
      },
    );
    const downfall = this.#supervisor.givenUp.then((reason) =>
      isOver ? { end: { kind: "given-up", reason } as const } : { end },
    );
    const last = await Promise.race([asked, downfall]);
    hurry.abort();
    return last;
  }

  async #onAddress(address: string): Promise<void> {
    await this.#connection.open(await this.#writeConfig(address));
  }

  async #writeConfig(address: string): Promise<ClientConfig> {
    const { manifest, settings } = this.#request;
    const { configFile, runId } = this.#directory;
    const plugin = "file" in manifest ? manifest.file : `./${PLUGIN_FILE}`;
    const text = localConfigText(runId, address, plugin, settings);
    await this.#directory.write("rollout.toml", text);
    return resolveConfig("coordinator", {
      file: { path: configFile, text },
      ...{ environment: {}, flags: {}, workingDirectory: this.#directory.path, topics: TOPICS },
    });
  }
}
