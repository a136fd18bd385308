// Releases for programs: another version of the run's plugin begun, looked at and steered. Its methods reject as the client's do.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import { newUlid } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import {
  createRelease,
  getRelease,
  isReleaseOver,
  listReleases,
  ReleaseNews,
  steerRelease,
} from "../client/releases.ts";
import type { Release, ReleaseSteering, ReleaseSummary } from "../client/releases.ts";
import { loadManifest } from "../config/manifest.ts";
import { loadRelease, releaseOfFlags, releaseOfSpec } from "../config/release-file.ts";
import type { ReleaseOrder } from "../config/release-file.ts";
import type { ReleaseSpec } from "../config/release.ts";
import { prospectOf } from "../config/release-prospect.ts";
import type { ReleaseProspect } from "../config/release-prospect.ts";
import { taskOf } from "../config/task.ts";
import type { ReleaseService } from "../gen/rollout/v1/release_pb.ts";

export interface CreateReleaseOptions {
  /** The candidate's manifest; left out where a file of a release names it. */
  readonly plugin?: string | undefined;
  /** A file of a release (docs/releases.md), or values in place of one. */
  readonly spec?: string | Partial<ReleaseSpec> | undefined;
  /** In place of `spec`: the shares of the stages, `["10%", "50%"]`; all items follow by themselves. */
  readonly stages?: readonly string[] | undefined;
  /** In place of `spec`: how many more errors the candidate may have, `"5%"`. */
  readonly maxWorse?: string | undefined;
  /** Begin although no worker has the candidate yet. */
  readonly wait?: boolean;
  /** Begin nothing: only say what would happen. */
  readonly dryRun?: boolean;
}

export interface CreatedRelease {
  /** Undefined where nothing has begun. */
  readonly release: string | undefined;
  readonly plugin: string;
  readonly stableVersion: string;
  readonly candidateVersion: string;
  readonly itemsLeft: number;
  readonly spec: ReleaseSpec;
  /** The differences that it can show with the items that are left. */
  readonly detects: ReleaseProspect;
}

/** News of numbers are collected for so long. */
const COLLECT_MS = 500;

export class Releases {
  readonly #calls: Client<typeof ReleaseService>;
  readonly #ports: { readonly clock: Clock; readonly random: Random };

  /** @internal */
  constructor(
    calls: Client<typeof ReleaseService>,
    ports: { readonly clock: Clock; readonly random: Random },
  ) {
    [this.#calls, this.#ports] = [calls, ports];
  }

  /**
   * Begins a release, and resolves when it is on the coordinator's disk. Rejects with what is wrong with the spec or the manifest
   * (config_…, manifest_unreadable), and with a row release_… when the run cannot have it now.
   */
  async create(options: CreateReleaseOptions): Promise<CreatedRelease> {
    return this.begin(await orderOf(options), options);
  }

  /**
   * The same for what was read before.
   * @internal
   */
  async begin(
    { manifestFile, spec }: ReleaseOrder,
    { wait = false, dryRun = false }: Pick<CreateReleaseOptions, "wait" | "dryRun">,
  ): Promise<CreatedRelease> {
    const manifest = await loadManifest(manifestFile);
    const { clock, random } = this.#ports;
    const { name, version } = manifest;
    const created = await createRelease(this.#calls, {
      ...{ id: newUlid(clock, random), spec, wait, dryRun },
      candidate: { name, version, digest: taskOf(manifest).digest },
    });
    const { plugin, stableVersion, candidateVersion, itemsLeft, workers } = created;
    const facts = {
      ...{ itemsLeft, readyWorkers: workers?.ready ?? 0 },
      ...{ attempts: created.attemptsEnded, failed: created.attemptsFailed },
    };
    return {
      ...{
        release: dryRun ? undefined : created.release,
        plugin,
        stableVersion,
        candidateVersion,
        itemsLeft,
      },
      ...{ spec, detects: prospectOf(spec, facts) },
    };
  }

  /** Without an id the one that is not over, or else the last one. Rejects with release_unknown. */
  get(id = ""): Promise<Release> {
    return getRelease(this.#calls, id);
  }

  /** All that the run has had, the latest first. */
  list(): Promise<ReleaseSummary[]> {
    return listReleases(this.#calls);
  }

  /** The release each time that something of it has changed, until it is over; the last one is as it ended. */
  async *follow(
    id = "",
    { signal }: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<Release, void, undefined> {
    const first = await this.get(id);
    const news = this.news(first.release);
    let told = "";
    for (;;) {
      const release = await news.next(signal);
      if (JSON.stringify(release) !== told) yield release;
      if (isReleaseOver(release)) return;
      told = JSON.stringify(release);
    }
  }

  /** @internal */
  news(id: string): ReleaseNews {
    return new ReleaseNews(this.#calls, { id, clock: this.#ports.clock, collectMs: COLLECT_MS });
  }

  /** The candidate gets nothing until `resume`; what executes may finish. Idempotent. */
  pause(reason = "", id = ""): Promise<Release> {
    return this.#steer("pause", { id, reason });
  }

  /** Lets a release that is held go on. Idempotent. */
  resume(id = ""): Promise<Release> {
    return this.#steer("resume", { id });
  }

  /** Ends the current stage, or the one that is named, without a verdict. A stage that is promoted already stays so. */
  async promote({
    id = "",
    stage,
  }: { readonly id?: string; readonly stage?: number } = {}): Promise<Release> {
    const current = await this.get(id);
    return this.#steer("promote", { id: current.release, stage: stage ?? current.stage });
  }

  /** Takes the candidate back for good. Idempotent. Rejects with release_completed when all items have the candidate. */
  abort(reason = "", id = ""): Promise<Release> {
    return this.#steer("abort", { id, reason });
  }

  #steer(
    steering: ReleaseSteering,
    more: { readonly id: string; readonly reason?: string; readonly stage?: number },
  ): Promise<Release> {
    return steerRelease(this.#calls, steering, more);
  }
}

/** Throws the refusals of the spec. */
export async function orderOf({
  plugin,
  spec,
  stages,
  maxWorse,
}: CreateReleaseOptions): Promise<ReleaseOrder> {
  const directory = process.cwd();
  const flags = { stages: stages?.join(","), maxWorse };
  if (spec !== undefined) refuseBoth(flags);
  if (typeof spec === "string") return loadRelease(spec, plugin, directory);
  if (spec !== undefined && plugin !== undefined) return releaseOfSpec(spec, plugin, directory);
  return releaseOfFlags({ plugin, ...flags }, directory);
}

function refuseBoth(flags: {
  readonly stages: string | undefined;
  readonly maxWorse: string | undefined;
}): void {
  for (const [key, value] of Object.entries({ stages: flags.stages, "max-worse": flags.maxWorse }))
    if (value !== undefined)
      throw failure("config_contradiction", {
        ...{ source: "the release", key, value, otherKey: "its spec", otherValue: "given" },
        rule: "name stages and metrics in the spec or by these options, not by both",
      });
}
