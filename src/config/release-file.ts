// A release as a user asks for it, in a file or by flags, read by one table of fields as strictly as a manifest.
import { resolve } from "node:path";
import { failure } from "../base/errors.ts";
import type { MetricSpec } from "../base/statistics/metric.ts";
import { FieldReader } from "./field-reader.ts";
import { nearestName } from "./nearest.ts";
import { METRIC_FIELDS, METRIC_KINDS, RELEASE_FIELDS, STAGE_FIELDS } from "./release-fields.ts";
import type { MetricKind } from "./release-fields.ts";
import type { ReleaseSpec, StageDemands, StageSpec } from "./release.ts";
import { refusalOfRelease } from "./release-rules.ts";
import { parseConfigText, readTrustedText } from "./toml-file.ts";
import type { FileSetting } from "./toml-file.ts";

/** A release that can be asked for. */
export interface ReleaseOrder {
  /** The candidate's manifest, an absolute path. */
  readonly manifestFile: string;
  readonly spec: ReleaseSpec;
}

/** Flags in place of a file. */
export interface ReleaseFlags {
  readonly plugin: string | undefined;
  readonly stages: string | undefined;
  readonly maxWorse: string | undefined;
}

const DEFAULT_SHARES = [0.01, 0.1, 0.5];

/** Throws `release_spec_unreadable`, `not_trusted` and what `parseRelease` throws. Paths are relative to `workingDirectory`. */
export async function loadRelease(
  file: string,
  plugin: string | undefined,
  workingDirectory: string,
): Promise<ReleaseOrder> {
  const path = resolve(workingDirectory, file);
  const text = await readTrustedText(path, "release_spec_unreadable");
  return parseRelease(path, text, plugin === undefined ? undefined : resolve(workingDirectory, plugin));
}

/** The same of a program's own values. Throws `config_invalid_value`. */
export function releaseOfSpec(
  spec: Partial<ReleaseSpec>,
  plugin: string,
  workingDirectory: string,
): ReleaseOrder {
  const whole = {
    ...releaseOfFlags({ plugin, stages: undefined, maxWorse: undefined }, workingDirectory).spec,
  };
  const order = { manifestFile: resolve(workingDirectory, plugin), spec: { ...whole, ...spec } };
  const refusal = refusalOfRelease(order.spec);
  if (refusal === undefined) return order;
  const { key, allowed } = refusal;
  throw failure("config_invalid_value", { source: "the release's spec", key, value: "as given", allowed });
}

/**
 * Throws `config_syntax` and the refusals of single fields. `file` is absolute; `plugin` is the flag's, an absolute path.
 * @internal
 */
export function parseRelease(file: string, text: string, plugin: string | undefined): ReleaseOrder {
  const isList = (name: string): boolean => name === "stage" || name === "metric";
  const settings = parseConfigText(file, text, (name) => name === "release", isList);
  return orderOf(new FieldReader(file, settings), plugin);
}

/** The same of flags alone. Throws the refusals of single fields; the place that they name is the flag. */
export function releaseOfFlags(flags: ReleaseFlags, workingDirectory: string): ReleaseOrder {
  const settings: FileSetting[] = [];
  flags.stages?.split(",").forEach((items, at) => {
    settings.push({ key: `stage[${at + 1}]`, value: {}, source: "flag --stages" });
    settings.push({ key: `stage[${at + 1}].items`, value: items.trim(), source: "flag --stages" });
  });
  if (flags.maxWorse !== undefined) {
    const source = "flag --max-worse";
    settings.push({ key: "metric[1]", value: {}, source });
    settings.push({ key: "metric[1].kind", value: "errors", source });
    settings.push({ key: "metric[1].max_worse", value: flags.maxWorse, source });
  }
  const plugin = flags.plugin === undefined ? undefined : resolve(workingDirectory, flags.plugin);
  return orderOf(new FieldReader(resolve(workingDirectory, "command line"), settings), plugin);
}

function orderOf(reader: FieldReader, plugin: string | undefined): ReleaseOrder {
  refuseUnknown(reader);
  const manifestFile = candidateOf(reader, plugin);
  const spec: ReleaseSpec = {
    alpha: reader.read("release.alpha", RELEASE_FIELDS.alpha),
    onBreach: reader.read("release.on_breach", RELEASE_FIELDS.on_breach),
    stages: readStages(reader),
    metrics: readMetrics(reader),
  };
  const refusal = refusalOfRelease(spec);
  if (refusal !== undefined) throw reader.refusal(refusal.key, refusal.allowed);
  return Object.freeze({ manifestFile, spec: Object.freeze(spec) });
}

/** One candidate, named in one place. */
function candidateOf(reader: FieldReader, plugin: string | undefined): string {
  const named = reader.read("release.plugin", RELEASE_FIELDS.plugin);
  if (plugin === undefined || named === undefined) {
    const one = plugin ?? named;
    if (one === undefined)
      throw reader.missing("release.plugin", "the candidate's manifest, here or with --plugin MANIFEST");
    return one;
  }
  throw failure("config_contradiction", {
    source: reader.sourceOf("release.plugin"),
    key: "release.plugin",
    value: named,
    otherKey: "--plugin",
    otherValue: plugin,
    rule: "a release has one candidate: name it in one of the two",
  });
}

function readStages(reader: FieldReader): readonly StageSpec[] {
  const count = countOf(reader, "stage");
  if (count === 0) return [...DEFAULT_SHARES.map((share) => defaultStage(share)), defaultStage(1)];
  const stages = Array.from({ length: count }, (_, at) => readStage(reader, `stage[${at + 1}]`));
  const last = stages.at(-1);
  return last?.kind === "items" && last.share === 1 ? stages : [...stages, defaultStage(1)];
}

function readStage(reader: FieldReader, name: string): StageSpec {
  const read = {
    items: reader.read(`${name}.items`, STAGE_FIELDS.items),
    workers: reader.read(`${name}.workers`, STAGE_FIELDS.workers),
  };
  if (read.items !== undefined && read.workers !== undefined)
    throw reader.refusal(`${name}.workers`, "either items or workers");
  const demands: StageDemands = {
    minItems: reader.read(`${name}.min_items`, STAGE_FIELDS.min_items),
    minTimeMs: reader.read(`${name}.min_time`, STAGE_FIELDS.min_time),
    maxItems: reader.read(`${name}.max_items`, STAGE_FIELDS.max_items),
  };
  if (read.workers !== undefined) return { ...demands, kind: "workers", workers: read.workers };
  if (read.items !== undefined) return { ...demands, kind: "items", share: read.items };
  throw reader.missing(`${name}.items`, 'a share such as "1%", or set workers');
}

function defaultStage(share: number): StageSpec {
  return {
    kind: "items",
    share,
    minItems: STAGE_FIELDS.min_items.default,
    minTimeMs: 10_000,
    maxItems: undefined,
  };
}

/** Errors are judged unless a metric of that kind says how. */
function readMetrics(reader: FieldReader): readonly MetricSpec[] {
  const metrics = Array.from({ length: countOf(reader, "metric") }, (_, at) =>
    readMetric(reader, `metric[${at + 1}]`),
  );
  return metrics.some(({ kind }) => kind === "errors")
    ? metrics
    : [...metrics, { kind: "errors", maxWorse: 0.01 }];
}

function readMetric(reader: FieldReader, name: string): MetricSpec {
  const kind = readKind(reader, name);
  switch (kind) {
    case "errors":
      return { kind, maxWorse: reader.read(`${name}.max_worse`, METRIC_FIELDS.errors.max_worse) };
    case "slower": {
      const { than, max_worse } = METRIC_FIELDS.slower;
      return {
        kind,
        thanMs: reader.read(`${name}.than`, than),
        maxWorse: reader.read(`${name}.max_worse`, max_worse),
      };
    }
    case "number": {
      const fields = METRIC_FIELDS.number;
      const pointer = reader.read(`${name}.pointer`, fields.pointer);
      const [low, high] = reader.read(`${name}.range`, fields.range);
      return {
        kind,
        name: reader.read(`${name}.name`, fields.name) ?? pointer.slice(pointer.lastIndexOf("/") + 1),
        pointer,
        low,
        high,
        better: reader.read(`${name}.better`, fields.better),
        maxWorse: reader.read(`${name}.max_worse`, fields.max_worse) ?? (high - low) / 100,
      };
    }
  }
}

function readKind(reader: FieldReader, name: string): MetricKind {
  return reader.read(`${name}.kind`, { kind: "choice", required: true, choices: METRIC_KINDS });
}

function countOf(reader: FieldReader, list: "stage" | "metric"): number {
  let count = 0;
  while (reader.has(`${list}[${count + 1}]`)) count++;
  return count;
}

function refuseUnknown(reader: FieldReader): void {
  for (const setting of reader.settings) {
    const [, table = "", key] = /^([^.]+)(?:\.(.+))?$/.exec(setting.key) ?? [];
    const [list = table] = table.split("[", 1);
    if (list === "release" && key === undefined)
      throw reader.refusal(setting.key, "a table, written [release]");
    if ((list === "stage" || list === "metric") && table === list)
      throw reader.refusal(setting.key, `a list of tables, each written [[${list}]]`);
    if (key === undefined && list !== table) continue;
    const known = knownKeys(reader, list, table);
    if (key === undefined || !known.includes(key))
      throw reader.unknown(setting, suggestionFor(setting.key, list, key, known));
  }
}

function knownKeys(reader: FieldReader, list: string, table: string): readonly string[] {
  if (list === "release") return Object.keys(RELEASE_FIELDS);
  if (list === "stage") return Object.keys(STAGE_FIELDS);
  if (list !== "metric") return [];
  return ["kind", ...Object.keys(METRIC_FIELDS[readKind(reader, table)])];
}

function suggestionFor(
  whole: string,
  list: string,
  key: string | undefined,
  known: readonly string[],
): string {
  if (key !== undefined && known.length > 0) {
    const nearest = nearestName(key, known);
    return nearest === undefined ? `known are ${known.join(", ")}` : `did you mean ${nearest}?`;
  }
  if (Object.keys(RELEASE_FIELDS).includes(whole)) return "write it below [release]";
  const tables = ["release", "stage", "metric"];
  const nearest = nearestName(list, tables);
  const written = { release: "[release]", stage: "[[stage]]", metric: "[[metric]]" };
  if (nearest === "release" || nearest === "stage" || nearest === "metric")
    return `did you mean ${written[nearest]}?`;
  return `known are ${Object.values(written).join(", ")}`;
}
