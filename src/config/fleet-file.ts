// The fleets of rollout.toml, read by one table of fields as strictly as a manifest.
import { dirname } from "node:path";
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import { FieldReader } from "./field-reader.ts";
import { FLEET_FIELDS, FLEET_LIST } from "./fleet-fields.ts";
import type { FleetField } from "./fleet-fields.ts";
import { readProvider } from "./fleet-provider.ts";
import type { FleetSettings, ProviderSettings } from "./fleet.ts";
import { describeField } from "./field.ts";
import { nearestName } from "./nearest.ts";
import type { FileSetting } from "./toml-file.ts";

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})$/;
const PRICED = ["max_cost", "max_cost_per_hour"] as const;

/** In the order of the file. `file` is absolute. Throws the refusals of single fields. */
export function readFleets(file: string, settings: readonly FileSetting[]): readonly FleetSettings[] {
  if (settings.length === 0) return [];
  const reader = new FieldReader(file, settings);
  refuseUnknown(reader);
  const fleets: FleetSettings[] = [];
  for (let at = 1; reader.has(`${FLEET_LIST}[${at}]`); at++) {
    const fleet = readFleet(reader, `${FLEET_LIST}[${at}]`, dirname(file));
    if (fleets.some(({ name }) => name === fleet.name))
      throw reader.refusal(`${FLEET_LIST}[${at}].name`, "a name that no other fleet has");
    fleets.push(fleet);
  }
  return fleets;
}

function readFleet(reader: FieldReader, table: string, directory: string): FleetSettings {
  const read = <Name extends FleetField>(name: Name) => reader.read(`${table}.${name}`, FLEET_FIELDS[name]);
  const refuse = (name: FleetField, allowed: string): RolloutError =>
    reader.refusal(`${table}.${name}`, allowed);
  const name = read("name");
  if (!LABEL.test(name))
    throw refuse("name", "small letters, digits and dashes, 32 at most, a letter or digit at each end");
  const provider = readProvider(reader, table, directory);
  const [min, max] = [read("min"), maxOf(reader, table, provider)];
  if (min > max) throw refuse("min", `at most max, which is ${max}`);
  const amounts = readAmounts(reader, table);
  const advertise = read("advertise");
  if (advertise !== undefined && provider.kind === "ssh" && provider.tunnel)
    throw refuse(
      "advertise",
      "nothing beside tunnel = true: workers find the coordinator through the tunnel",
    );
  return {
    ...{ name, slots: slotsOf(reader, table, provider), min, max, provider },
    ...{ pollIntervalMs: read("poll_interval"), startTimeoutMs: read("start_timeout") },
    ...{ queueTimeoutMs: read("queue_timeout"), idleTimeoutMs: read("idle_timeout") },
    ...{ finishWithinMs: read("finish_within"), maxPending: read("max_pending") },
    ...{ maxLifetimeMs: read("max_lifetime"), orphanTimeoutMs: read("orphan_timeout"), ...amounts },
    ...{ stopAtMs: readTime(reader, `${table}.stop_at`), advertise },
  };
}

/** Each host has one worker. */
function maxOf(reader: FieldReader, table: string, provider: ProviderSettings): number {
  const max = reader.read(`${table}.max`, FLEET_FIELDS.max);
  if (provider.kind !== "ssh") {
    if (max === undefined) throw reader.missing(`${table}.max`, describeField(FLEET_FIELDS.max));
    return max;
  }
  const hosts = provider.hosts.length;
  if (max !== undefined && max > hosts)
    throw reader.refusal(`${table}.max`, `at most the number of hosts, which is ${hosts}`);
  return max ?? hosts;
}

/** As the rule counts them: never more than a worker has. */
function slotsOf(reader: FieldReader, table: string, provider: ProviderSettings): number {
  const slots = reader.read(`${table}.slots`, FLEET_FIELDS.slots);
  if (provider.kind === "ssh") return Math.max(1, Math.min(...provider.hosts.map((host) => host.slots)));
  if (slots === 0) throw reader.refusal(`${table}.slots`, "an integer from 1 to 1024");
  return slots;
}

type Amounts = Pick<FleetSettings, "pricePerHour" | "maxMachineHours" | "maxCost" | "maxCostPerHour">;

function readAmounts(reader: FieldReader, table: string): Amounts {
  const amount = (
    name: "price_per_hour" | "max_machine_hours" | "max_cost" | "max_cost_per_hour",
  ): number | undefined => reader.read(`${table}.${name}`, FLEET_FIELDS[name]);
  const pricePerHour = amount("price_per_hour");
  for (const name of PRICED) {
    if (pricePerHour !== undefined || !reader.has(`${table}.${name}`)) continue;
    throw failure("config_missing_key", {
      source: reader.sourceOf(`${table}.${name}`),
      key: `${table}.price_per_hour`,
      allowed: `what one machine costs in an hour: ${name} is counted by it`,
    });
  }
  const maxCostPerHour = amount("max_cost_per_hour");
  if (maxCostPerHour !== undefined && pricePerHour !== undefined && maxCostPerHour < pricePerHour)
    throw reader.refusal(`${table}.max_cost_per_hour`, "at least price_per_hour, or nothing is ever started");
  return {
    ...{ pricePerHour, maxMachineHours: amount("max_machine_hours") },
    ...{ maxCost: amount("max_cost"), maxCostPerHour },
  };
}

function readTime(reader: FieldReader, key: string): number | undefined {
  const text = reader.read(key, FLEET_FIELDS.stop_at);
  if (text === undefined) return undefined;
  const timeMs = TIME.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(timeMs)) throw reader.refusal(key, 'a time with its zone, such as "2027-01-31T18:00:00Z"');
  return timeMs;
}

function refuseUnknown(reader: FieldReader): void {
  const known = Object.keys(FLEET_FIELDS);
  for (const setting of reader.settings) {
    if (setting.key === FLEET_LIST)
      throw reader.refusal(setting.key, `a list of tables, each written [[${FLEET_LIST}]]`);
    const [, , name] = /^(.+\])(?:\.(.+))?$/.exec(setting.key) ?? [];
    if (name === undefined || known.includes(name)) continue;
    const nearest = nearestName(name, known);
    const suggestion = nearest === undefined ? `known are ${known.join(", ")}` : `did you mean ${nearest}?`;
    throw reader.unknown(setting, suggestion);
  }
}
