// The course of a local run: a cluster, the following of its results, and an ending, from the start of its coordinator to the end of its
// last process. Keeps true: workers leave before the coordinator, so that what they still finish is recorded and written; no process is
// left, however it ends.
import { sleep } from "../../base/clock.ts";
import { assert } from "../../base/assert.ts";
import { RolloutError } from "../../base/errors.ts";
import { printable } from "../../base/safe-text.ts";
import { number } from "../../cli/render/quantities.ts";
import { missingText } from "../../cli/results/result-sink.ts";
import { shownPath } from "../../cli/shell-words.ts";
import type { RunStatus } from "../../client/run-status.ts";
import type { Submitted } from "../../client/submit.ts";
import { LIMITS } from "../../config/limits.ts";
import { CREW_FILE, crewText } from "./added-workers.ts";
import { Cluster } from "./cluster.ts";
import { isOfLine } from "./local-input.ts";
import type { LocalInput } from "./local-input.ts";
import { ProgressWatch } from "./progress-watch.ts";
import type { LocalRunEnd, LocalRunPorts, LocalRunRequest, LocalRunSummary } from "./request.ts";
import { ResultsWriter } from "./result-files.ts";
import type { RunDirectory } from "./run-directory.ts";
import { lengthsOf, NO_END } from "./run-record.ts";
import type { Request } from "./run-record.ts";

/** In place of how fast it goes, when it is over. */
const LAST_WORDS: Readonly<Record<LocalRunEnd["kind"], string | undefined>> = {
  complete: undefined,
  already: undefined,
  cancelled: "cancelled",
  interrupted: "interrupted",
  paused: "paused",
  parked: undefined,
  helped: undefined,
  "given-up": "ended",
};
/** Longer than a coordinator takes to come back. */
const LAST_PATIENCE_MS = 10_000;

export class Course {
  readonly #request: LocalRunRequest;
  readonly #ports: LocalRunPorts;
  readonly #directory: RunDirectory;
  readonly #input: LocalInput;
  readonly #cluster: Cluster;
  readonly #watch: ProgressWatch;
  readonly #winding = new AbortController();
  #submitted: Submitted | undefined;
  #end: LocalRunEnd | undefined;
  #areWorkersStarted = false;
  #following: ReturnType<ResultsWriter["follow"]> | undefined;

  constructor(request: LocalRunRequest, ports: LocalRunPorts, directory: RunDirectory, input: LocalInput) {
    const { clock, display, random } = ports;
    [this.#request, this.#ports, this.#directory, this.#input] = [request, ports, directory, input];
    const say = (sentence: string): void => display.say(sentence);
    this.#cluster = new Cluster(directory, request, { clock, random, say });
    this.#watch = new ProgressWatch({
      ...{ client: this.#cluster.client, display, clock, expected: () => input.expected },
      slots: slotsOf(request),
    });
  }

  async perform(asked: Request | undefined): Promise<LocalRunSummary> {
    const { interrupted, onStarted } = this.#ports;
    onStarted({ killAll: () => this.#cluster.kill(), end: () => this.#end });
    const ends = [
      interrupted.then((): LocalRunEnd => ({ kind: "interrupted" })),
      this.#cluster.givenUp.then((reason): LocalRunEnd => ({ kind: "given-up", reason })),
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
      const parked = this.#watch.parked.then((what): LocalRunEnd => ({ kind: "parked", ...what }));
      const end = await Promise.race([this.#work(writer), paused, parked, ...ends]);
      return await this.#windUp(end, writer, asked);
    } finally {
      this.#winding.abort();
      await this.#cluster.stopWorkers();
      await this.#watch.stop();
      await this.#cluster.stop();
      await writer?.abandon();
    }
  }

  /** A coordinator leads, and results have a place to go to. */
  async #begin(): Promise<{ readonly writer: ResultsWriter }> {
    const { display } = this.#ports;
    const directory = this.#directory;
    await directory.waitForEarlier(
      (holder) => display.say(`waiting for ${holder}, which an earlier run has left behind`),
      this.#winding.signal,
    );
    const { program, again: command } = this.#request;
    const begunBy = { workingDirectory: program.workingDirectory, command };
    await directory.keep({ begunBy, ...NO_END });
    await this.#cluster.begin(directory);
    const { patientClient: client } = this.#cluster;
    const { state, pauseReason, done, failed, setAside, keys, inside } = await client.status();
    directory.refuseLessThanRecorded(done + setAside);
    const writer = await ResultsWriter.open({
      ...{ files: this.#request.files, directory, client: this.#cluster.client, setAside },
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
    if (this.#request.retryFailed) {
      // Nobody works yet: these are all of them, also where the coordinator took them back and died before it could say so.
      await client.retry();
      const again = failed + writer.failedInside.unheard;
      const some = again === 1 ? "1 failed item is" : `${number(again)} failed items are`;
      display.say(`${some} tried again`);
      if (failed + (inside?.failed ?? 0) > 0) await writer.startAnew();
    }
    if (this.#request.skipsParked && keys !== undefined && keys.parked > 0) {
      const skipped = await client.skipParked();
      if (skipped > 0)
        display.say(
          `${number(skipped)} ${skipped === 1 ? "key goes" : "keys go"} on without the item that has failed`,
        );
    }
    return { writer };
  }

  /** Submits, and writes results until there is nothing more to come. */
  async #work(writer: ResultsWriter): Promise<LocalRunEnd> {
    this.#watch.start();
    const { state, pending, running, inside, timers } = await this.#cluster.patientClient.status();
    if (state === "cancelled") return { kind: "cancelled" };
    const open = pending + running + (inside?.pending ?? 0) + (inside?.running ?? 0) + (timers?.armed ?? 0);
    if (open > 0) await this.#startWorkers();
    const submitting = this.#submit();
    this.#following = this.#follow(writer, submitting);
    const refused = submitting.then((end) => end ?? new Promise<never>(() => undefined));
    try {
      const [how] = await Promise.race([
        Promise.all([this.#following, submitting]),
        refused.then((end) => [end]),
      ]);
      if (typeof how === "object") return how;
      if (how !== "end") return { kind: "interrupted" };
    } catch (error) {
      if (!(error instanceof RolloutError) || error.code !== "run_cancelled") throw error;
      return { kind: "cancelled" };
    }
    const { state: left } = await this.#cluster.patientClient.status();
    return { kind: left === "cancelled" ? "cancelled" : "complete" };
  }

  /** A run that was complete comes to its end at once, and to another one when there are new lines. */
  async #follow(writer: ResultsWriter, submitting: Promise<unknown>): ReturnType<ResultsWriter["follow"]> {
    const how = await writer.follow(this.#winding.signal);
    if (how !== "end") return how;
    await submitting;
    return writer.follow(this.#winding.signal);
  }

  /** All of it, and the run takes no more; or up to a line that is no item: then the run is paused, and this is the end. */
  async #submit(): Promise<LocalRunEnd | undefined> {
    const { patientClient: client } = this.#cluster;
    const { fields } = this.#request.input;
    try {
      this.#submitted = await client.submit(this.#input.lines(), {
        ...{ reopen: true, key: fields?.key, id: fields?.eventId },
        onProgress: ({ added, known }) => {
          this.#watch.submitted(added + known);
          if (added > 0) void this.#startWorkers();
        },
      });
    } catch (error) {
      if (!isOfLine(error)) throw error;
      const reason = `${printable(error.message)}; correct that line`;
      await client.pause(shortened(reason));
      return { kind: "paused", reason };
    }
    const { added, known } = this.#submitted;
    const isAll = added + known === this.#input.read?.items;
    assert(isAll, "a line that got lost on the way does not look like one that is done");
    this.#watch.submitted(undefined);
    await client.seal();
    return undefined;
  }

  async #startWorkers(): Promise<void> {
    if (this.#areWorkersStarted || this.#winding.signal.aborted) return;
    this.#areWorkersStarted = true;
    const { workers } = this.#request;
    // Those on hosts the coordinator brings.
    if (workers === 0) return;
    await this.#directory.write(CREW_FILE, await crewText({ workers, input: this.#input.identity }));
    await this.#cluster.startWorkers(await this.#directory.workerIds(workers));
  }

  /** Workers leave first, so that what they still finish is recorded and written. */
  async #windUp(
    end: LocalRunEnd,
    writer: ResultsWriter,
    request: Request | undefined,
  ): Promise<LocalRunSummary> {
    this.#end = end;
    const situations = {
      cancelled: "cancelled: stopping",
      interrupted: "stopping: running items have 15 s to finish; press Ctrl-C again to stop now",
      paused: "paused: running items have 15 s to finish, then this command ends with code 5",
      parked: "stopping: all items that are left wait behind failed items of their keys",
      helped: "stopping",
      "given-up": "stopping",
    } as const;
    if (end.kind !== "complete" && end.kind !== "already") this.#watch.say(situations[end.kind]);
    const summary = await this.#summary(
      end.kind === "complete" ? end : await this.#leave(end, writer),
      writer,
    );
    const { counts } = summary;
    if (counts !== undefined && summary.end.kind === "paused") {
      const { done, failed } = counts;
      await this.#directory.keep({ paused: { reason: summary.end.reason, done, failed } });
    }
    const isOver = summary.end.kind === "complete" || summary.end.kind === "cancelled";
    if (counts === undefined || !isOver) return summary;
    await writer.finish(counts);
    const { done, failed, failedByClass, failureMessages } = counts;
    const { failedItem, failedInside } = writer;
    if (summary.end.kind === "cancelled") await this.#directory.keep({ cancelled: { done, failed } });
    const { read } = this.#input;
    if (
      request !== undefined &&
      read !== undefined &&
      end.kind === "complete" &&
      (counts.setAside ?? 0) === 0
    )
      await this.#directory.keep({
        finished: {
          asked: { input: read.digest, ...request },
          ...{ items: read.items, done, failed, failedByClass, failureMessages, failedItem, failedInside },
          lengths: await lengthsOf(request),
        },
      });
    return { ...summary, failedItem, failedInside };
  }

  async #leave(end: LocalRunEnd, writer: ResultsWriter): Promise<LocalRunEnd> {
    this.#winding.abort();
    await this.#cluster.stopWorkers();
    // Two readers would write everything twice.
    await this.#following?.catch(() => undefined);
    return end.kind === "given-up" ? end : this.#catchUp(end, writer);
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
    const reason = await Promise.race([written.then(() => undefined), this.#cluster.givenUp]);
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
      items: this.#input.read?.items,
      counts,
      failedItem: writer?.failedItem,
      failedInside: writer?.failedInside,
      submitted: this.#submitted,
      reassigned,
      elapsedMs,
    };
  }

  /** A run that is over has to say so itself: without a coordinator that can be kept alive it has not. Any other end waits a moment. */
  async #lastStatus(
    end: LocalRunEnd,
  ): Promise<{ readonly end: LocalRunEnd; readonly status?: RunStatus | undefined }> {
    if (end.kind === "given-up")
      return { end, status: await this.#cluster.client.status().catch(() => undefined) };
    const isOver = end.kind === "complete" || end.kind === "cancelled";
    const hurry = new AbortController();
    if (!isOver) void sleep(this.#ports.clock, LAST_PATIENCE_MS, hurry.signal).then(() => hurry.abort());
    const asked = this.#cluster.patientClient.status({ signal: hurry.signal }).then(
      (status) => ({ end, status }),
      (error: unknown) => {
        if (isOver && !hurry.signal.aborted) throw error;
        return { end };
      },
    );
    const downfall = this.#cluster.givenUp.then((reason) =>
      isOver ? { end: { kind: "given-up", reason } as const } : { end },
    );
    const last = await Promise.race([asked, downfall]);
    hurry.abort();
    return last;
  }
}

/** 0 where nobody knows how many the hosts have. */
function slotsOf({ workers, slotsPerWorker, hosts }: LocalRunRequest): number {
  const there = hosts?.settings.hosts.map(({ slots }) => slots) ?? [];
  return there.includes(0) ? 0 : there.reduce((sum, slots) => sum + slots, workers * slotsPerWorker);
}

/** A reason as a run takes it: of a longer one the end, in which the line stands. */
function shortened(reason: string): string {
  const bytes = Buffer.from(reason);
  if (bytes.length <= LIMITS.itemTextBytes) return reason;
  const end = bytes.subarray(bytes.length - LIMITS.itemTextBytes + Buffer.byteLength("…"));
  return `…${end.toString().replace(/^\uFFFD+/, "")}`;
}
