// The keys of `[[fleet]]` that belong to its provider: each has its own, and one of another is refused.
import type { FieldReader } from "./field-reader.ts";
import { FIELDS_OF_PROVIDERS, FLEET_FIELDS } from "./fleet-fields.ts";
import type { FleetField } from "./fleet-fields.ts";
import type { HostSettings, ProviderSettings, SshSettings } from "./fleet.ts";

/** `directory` is that of the file. Throws the refusals of single fields. */
export function readProvider(reader: FieldReader, table: string, directory: string): ProviderSettings {
  const read = <Name extends FleetField>(name: Name) => reader.read(`${table}.${name}`, FLEET_FIELDS[name]);
  const kind = read("provider");
  refuseKeysOfOthers(reader, table, kind);
  const common = { timeoutMs: read("timeout"), directory };
  switch (kind) {
    case "exec":
      return { kind, command: commandIn(reader, table, "command"), ...common };
    case "ssh":
      return {
        ...{ kind, ...common, hosts: hostsIn(reader, table) },
        ...{ client: commandIn(reader, table, "ssh"), program: read("program"), args: read("args") ?? [] },
        ...{ hostDirectory: hostDirectoryIn(read("dir")), environment: read("env") },
        ...{ plugin: read("plugin"), tunnel: read("tunnel") },
      };
  }
}

function refuseKeysOfOthers(
  reader: FieldReader,
  table: string,
  kind: keyof typeof FIELDS_OF_PROVIDERS,
): void {
  const own: readonly string[] = FIELDS_OF_PROVIDERS[kind];
  for (const [other, names] of Object.entries(FIELDS_OF_PROVIDERS)) {
    const found = names.find((name) => !own.includes(name) && reader.has(`${table}.${name}`));
    if (found === undefined) continue;
    const allowed = `no such key: it is one of provider ${other}, and ${kind} has ${own.join(", ")}`;
    throw reader.refusal(`${table}.${found}`, allowed);
  }
}

function commandIn(
  reader: FieldReader,
  table: string,
  name: "command" | "ssh",
): readonly [string, ...string[]] {
  const [program, ...words] = reader.read(`${table}.${name}`, FLEET_FIELDS[name]);
  if (program === undefined) throw reader.refusal(`${table}.${name}`, "a program, and words for it");
  return [program, ...words];
}

function hostsIn(reader: FieldReader, table: string): readonly HostSettings[] {
  const { max } = FLEET_FIELDS.slots;
  const slots = reader.read(`${table}.slots`, FLEET_FIELDS.slots);
  const refuse = (allowed: string): Error => reader.refusal(`${table}.hosts`, allowed);
  const hosts = reader.read(`${table}.hosts`, FLEET_FIELDS.hosts).map((text): HostSettings => {
    const [host = "", own] = text.split("=");
    const number = own === undefined ? slots : Number(own);
    if (own !== undefined && (number < 1 || number > max)) throw refuse(`slots from 1 to ${max}`);
    return { host, slots: number };
  });
  const again = hosts.find(({ host }, at) => hosts.findIndex((other) => other.host === host) !== at);
  if (again !== undefined) throw refuse(`each host once, and ${again.host} is there twice`);
  return hosts;
}

/** A login begins at home. */
function hostDirectoryIn(directory: SshSettings["hostDirectory"] | undefined): string {
  return (directory ?? "").replace(/^~(?:\/|$)/, "");
}
