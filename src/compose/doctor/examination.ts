// Everything that a run needs, looked at in the order in which it is needed: here the certificates that commands and workers of this machine
// show, and the files of a local run's results. Nothing that is stored is changed by looking.
import { dirname } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import { systemRandom } from "../../base/random.ts";
import type { ClientConfig, StorageConfig } from "../../config/resolve.ts";
import { compareFiles } from "../../cli/results/cursor-file.ts";
import type { HintedLine } from "../../cli/shell-words.ts";
import type { Logger } from "../../observe/log.ts";
import { systemStatFs } from "../../storage/level/directory.ts";
import { bundleNaming, loadBundle } from "../../transport/tls/bundle.ts";
import type { CertificateFacts } from "../../transport/tls/certificate-reading.ts";
import { invalid, loadCredentials } from "../../transport/tls/credential-files.ts";
import { operatorFiles } from "../../transport/tls/host-credentials.ts";
import { findEndedRun } from "../local-run/ended-run.ts";
import { writtenOf } from "../local-run/run-record.ts";
import { examineCoordinator } from "./coordinator.ts";
import type { Finding } from "./finding.ts";
import { examined, good, warning } from "./finding.ts";
import { examineFleetSettings } from "./fleets.ts";
import { examineMachine, examinePreemption, examineStateDirectory } from "./machine.ts";
import { examinePluginDirectory } from "./plugin-directory.ts";
import { examinePlugins } from "./plugins.ts";
import { examinePostgres } from "./postgres.ts";
import type { PostgresLook } from "./postgres.ts";
import { quarantine, quarantineUnled } from "./quarantine.ts";
import { examineStorage } from "./storage.ts";

const DAY_MS = 86_400_000;
/** The coordinator renews what is its own long before. */
const DAYS_WANTED = 3;

export interface ExaminedConfig {
  readonly config: ClientConfig;
  /** The database that a coordinator on this machine would use; undefined when the configuration is for clients only. */
  readonly storage: StorageConfig | undefined;
  /** Key of a row of the database that is to be set aside first. */
  readonly quarantined: string | undefined;
  /** For hints: about this configuration. */
  readonly line: HintedLine;
  /** The environment of a worker, were it started here. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** For a machine that has no configuration yet: all that needs none. `config` has the defaults, and what flags say. */
export async function examineAlone(
  { config, environment }: Pick<ExaminedConfig, "config" | "environment">,
  { clock }: { readonly clock: Clock },
): Promise<readonly Finding[]> {
  const detail = `there is none at ${config.source}, so only this machine was looked at`;
  const hint = "`rollout run` needs none; for a cluster make one with `rollout init`, or name one with -c";
  const { plugins, pluginDir } = config.worker;
  const findings = [
    await examineMachine(config.worker.slots),
    [warning("configuration", detail, hint)],
    await examinePlugins(plugins, { environment, clock }),
    await examinePluginDirectory(pluginDir, plugins, { environment, clock }),
    await examined("preemption notices", () => examinePreemption(config, clock)),
  ];
  return findings.flat();
}

export async function examine(
  { config, storage, quarantined, environment, line }: ExaminedConfig,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<readonly Finding[]> {
  const { runId } = config;
  const ttlMs = config.coordinator.failoverThresholdMs;
  const place = { runId, ttlMs, clock, random: systemRandom, log, line };
  const { stateDir, plugins, pluginDir } = config.worker;
  // Certificates are made by the coordinator that has never been there: what it says of the run is enough then.
  const lacksCertificates = await wasNeverStarted(config.source);
  const operator = lacksCertificates
    ? []
    : await examined("operator certificate", () => examineOperator(config, clock));
  const hasCertificate = operator.every(({ verdict }) => verdict !== "failure");
  const findings = [
    await examineMachine(config.worker.slots),
    [good("configuration", `${config.source}: run ${config.runId}`)],
    operator,
    ...(quarantined === undefined ? [] : [await setAsideFirst(storage, quarantined, place)]),
    ...(storage === undefined ? [] : [await examined("database", () => examineLedger(storage, place))]),
    await examined("results", () => examineResults(config.source)),
    await examined("state directory", () => examineStateDirectory(stateDir, systemStatFs)),
    await examinePlugins(plugins, { environment, clock }),
    await examinePluginDirectory(pluginDir, plugins, { environment, clock }),
    await examineFleetSettings(config, environment["PATH"]),
    await examined("preemption notices", () => examinePreemption(config, clock)),
    ...(config.transport.certificates === undefined && !lacksCertificates
      ? [await examined("enrolment bundle", () => examineEnrolment(config, clock))]
      : []),
    // Without it nothing could be asked, and the finding would be the same.
    ...(hasCertificate
      ? [await examined("coordinator", () => examineCoordinator(config, { clock, log, line }))]
      : []),
  ];
  return findings.flat();
}

/** A directory of which nobody can tell is a finding of those who look into it. */
async function wasNeverStarted(configFile: string): Promise<boolean> {
  try {
    return (await findEndedRun(configFile))?.wasNeverStarted === true;
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return false;
  }
}

type LedgerPlace = Omit<PostgresLook, "storage">;

/** Throws store_… rows. */
function examineLedger(storage: StorageConfig, place: LedgerPlace): Promise<readonly Finding[]> {
  if (storage.postgres !== undefined) return examinePostgres({ ...place, storage: storage.postgres });
  return examineStorage({ ...place, path: storage.path, statFs: systemStatFs });
}

/** Throws what `quarantine` throws: then nothing is looked at. */
function setAsideFirst(
  storage: StorageConfig | undefined,
  key: string,
  place: LedgerPlace,
): Promise<readonly Finding[]> {
  const reason = "this configuration names no database (storage.path, storage.url)";
  if (storage === undefined) throw failure("quarantine_refused", { key, reason });
  if (storage.postgres === undefined) return quarantine({ ...place, path: storage.path, key });
  return quarantineUnled({ ...place, storage: storage.postgres }, key);
}

/** Throws tls_… rows. */
async function examineOperator(config: ClientConfig, clock: Clock): Promise<readonly Finding[]> {
  const files = config.transport.certificates ?? operatorFiles(config.transport.tlsDir);
  const expected = { runId: config.runId, roles: ["operator"] as const };
  const { facts } = await loadCredentials(files, expected, clock);
  return [lifetimeOf("operator certificate", facts, clock)];
}

/** The bundle that workers of this machine enrol with. Throws tls_… rows. */
async function examineEnrolment(config: ClientConfig, clock: Clock): Promise<readonly Finding[]> {
  const file = config.worker.enrolment;
  const { facts } = await loadBundle(file, ["enrolment"], clock);
  if (facts.identity.runId !== config.runId)
    throw invalid(
      bundleNaming(file),
      `it belongs to run ${facts.identity.runId}, and this run is ${config.runId}`,
    );
  return [lifetimeOf("enrolment bundle", facts, clock)];
}

function lifetimeOf(subject: string, { notAfterMs }: CertificateFacts, clock: Clock): Finding {
  const days = Math.floor((notAfterMs - clock.wallMs()) / DAY_MS);
  if (days >= DAYS_WANTED) return good(subject, `valid for ${days} more days`);
  return warning(
    subject,
    `expires within ${days + 1} days`,
    "start the coordinator, which renews what is its own",
  );
}

/**
 * The files of a local run's results, read as a whole and compared with what was written to them. `configFile` is of the run; where it is no
 * local run with such files there is no finding. Throws run_directory_unusable when nobody can tell.
 */
async function examineResults(configFile: string): Promise<readonly Finding[]> {
  const written = await writtenOf(dirname(configFile));
  const compared = written === undefined ? [] : await compareFiles(written);
  return compared.map(({ file, state }): Finding => {
    const subject = "results";
    switch (state) {
      case "as-written":
        return good(subject, `${file}: as it was written`);
      case "gone":
        return warning(
          subject,
          `${file} is not there any more`,
          "give the same command again: it is written anew",
        );
      case "unknown":
        return warning(
          subject,
          `${file}: nobody can say whether it is as it was written`,
          "compare it yourself",
        );
      case "changed": {
        const reason = "it has other bytes than what was written to it";
        const advice = `restore it, or remove ${file} and give the same command again: nothing is run again`;
        const error = failure("output_not_continued", { file, reason, advice });
        return { subject, verdict: "failure", detail: error.message, error };
      }
    }
  });
}
