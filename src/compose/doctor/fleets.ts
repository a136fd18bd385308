// Fleets of the configuration, as far as this machine can tell, and those of the run, as its coordinator has them.
import { isLoopback, parseAddress } from "../../base/address.ts";
import { failure } from "../../base/errors.ts";
import { printable } from "../../base/safe-text.ts";
import type { HintedLine } from "../../cli/shell-words.ts";
import type { FleetDetail } from "../../client/fleets.ts";
import type { FleetSettings } from "../../config/fleet.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import { findProgram } from "../../worker/children/program-search.ts";
import type { Finding } from "./finding.ts";
import { good, warning } from "./finding.ts";

/** Says of each fleet of the file whether its program is there, and whether other machines find the coordinator. `searched`: the PATH. */
export async function examineFleetSettings(
  { fleets, source, worker: { coordinatorAddr } }: Pick<ClientConfig, "fleets" | "source" | "worker">,
  searched: string | undefined,
): Promise<readonly Finding[]> {
  const findings = await Promise.all(fleets.map((fleet, at) => programOf(fleet, { source, at, searched })));
  const isOfThisMachine = coordinatorAddr.every((address) => {
    const host = parseAddress(address)?.host;
    return host !== undefined && isLoopback(host);
  });
  // Others are refused at the start of the coordinator.
  const own = fleets.filter(({ provider, advertise }) => provider.kind === "exec" && advertise === undefined);
  if (own.length === 0 || !isOfThisMachine) return findings;
  const names = own.map(({ name }) => name).join(", ");
  const addresses = coordinatorAddr.join(", ");
  const detail = `workers of ${names} on other machines cannot reach the coordinator at ${addresses}: it is of this machine alone`;
  const hint =
    "set transport.listen_addr and worker.coordinator_addr, unless the fleet starts its workers here";
  return [...findings, warning("fleet", detail, hint)];
}

async function programOf(
  { name, provider }: FleetSettings,
  {
    source,
    at,
    searched,
  }: { readonly source: string; readonly at: number; readonly searched: string | undefined },
): Promise<Finding> {
  const [word] = provider.kind === "exec" ? provider.command : provider.client;
  const program = await findProgram(word, provider.directory, searched);
  if (program.kind === "found") return good("fleet", `${name}: its program is ${program.path}`);
  const error = failure("config_invalid_value", {
    ...{ source, key: `fleet[${at + 1}].${provider.kind === "exec" ? "command" : "ssh"}`, value: word },
    allowed: "a program that is there and may be executed; docs/fleet.md has what it is to do",
  });
  return { subject: "fleet", verdict: "failure", detail: `${error.message}: ${program.reason}`, error };
}

/** Fleets that start nobody, and fleets of which nobody knows what they have. */
export function fleetsFound(fleets: readonly FleetDetail[], line: HintedLine): Finding[] {
  return fleets.flatMap(({ fleet: { name, state, reason }, listTrouble }) => [
    ...(state === "halted"
      ? [warning("fleet", `${name} is halted: ${printable(reason)}`, resuming(name, line))]
      : []),
    ...(listTrouble === "" ? [] : [unlisted(name, listTrouble, line)]),
  ]);
}

function resuming(name: string, line: HintedLine): string {
  const [list, resume] = [line("fleet", "list", "--all"), line("fleet", "resume", name)];
  return `\`${list}\` shows what has failed, and \`fleet logs\` its last words; then \`${resume}\``;
}

function unlisted(name: string, trouble: string, line: HintedLine): Finding {
  const detail = `${name} cannot be listed, and nothing is started or ended meanwhile: ${printable(trouble)}`;
  return warning("fleet", detail, `\`${line("fleet", "check", name)}\` asks its provider`);
}
