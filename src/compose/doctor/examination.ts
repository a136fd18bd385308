// Everything that a run needs, looked at in the order in which it is needed. Nothing that is stored is changed by looking.
import type { Clock } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import type { RunId } from "../../base/ids.ts";
import type { ClientConfig, ResolvedConfig } from "../../config/resolve.ts";
import type { HintedLine } from "../../cli/shell-words.ts";
import type { Logger } from "../../observe/log.ts";
import { systemStatFs } from "../../storage/level/directory.ts";
import { findEndedRun } from "../local-run/ended-run.ts";
import { examineEnrolment, examineOperator } from "./certificates.ts";
import { examineCoordinator } from "./coordinator.ts";
import type { Finding } from "./finding.ts";
import { examined, good, warning } from "./finding.ts";
import { examineMachine, examinePreemption, examineStateDirectory } from "./machine.ts";
import { examinePlugins } from "./plugins.ts";
import { examineResults } from "./results.ts";
import { quarantine } from "./quarantine.ts";
import { examineStorage } from "./storage.ts";

export interface ExaminedConfig {
  readonly config: ClientConfig;
  /** The database that a coordinator on this machine would use; undefined when the configuration is for clients only. */
  readonly storagePath: ResolvedConfig["storage"]["path"] | undefined;
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
  const findings = [
    await examineMachine(config.worker.slots),
    [warning("configuration", detail, hint)],
    await examinePlugins(config.worker.plugins, { environment, clock }),
    await examined("preemption notices", () => examinePreemption(config, clock)),
  ];
  return findings.flat();
}

export async function examine(
  { config, storagePath, quarantined, environment, line }: ExaminedConfig,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<readonly Finding[]> {
  const { runId } = config;
  const { stateDir, plugins } = config.worker;
  // Certificates are made by the coordinator that has never been there: what it says of the run is enough then.
  const lacksCertificates = (await findEndedRun(config.source))?.wasNeverStarted === true;
  const operator = lacksCertificates
    ? []
    : await examined("operator certificate", () => examineOperator(config, clock));
  const hasCertificate = operator.every(({ verdict }) => verdict !== "failure");
  const findings = [
    await examineMachine(config.worker.slots),
    [good("configuration", `${config.source}: run ${config.runId}`)],
    operator,
    ...(quarantined === undefined ? [] : [await setAsideFirst(storagePath, runId, quarantined, clock)]),
    ...(storagePath === undefined
      ? []
      : [
          await examined("database", () =>
            examineStorage({ path: storagePath, runId, statFs: systemStatFs, clock, line }),
          ),
        ]),
    await examineResults(config.source),
    await examined("state directory", () => examineStateDirectory(stateDir, systemStatFs)),
    await examinePlugins(plugins, { environment, clock }),
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

/** Throws what `quarantine` throws: then nothing is looked at. */
function setAsideFirst(
  path: string | undefined,
  runId: RunId,
  key: string,
  clock: Clock,
): Promise<readonly Finding[]> {
  const reason = "this configuration names no database (storage.path)";
  if (path === undefined) throw failure("quarantine_refused", { key, reason });
  return quarantine({ path, runId, key, clock });
}
