// `node scripts/generate-docs.ts`: writes the documents that are made from tables of the source. A test compares them with
// what is in docs, so that neither is changed alone.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { format } from "oxfmt";
import type { FormatConfig } from "oxfmt";
import { MEANING_OF_EXIT } from "../src/cli/help.ts";
import { chartMermaid } from "../src/charts/mermaid.ts";
import { ownMachines } from "../src/charts/named-machine.ts";
import { EXIT } from "../src/base/error-row.ts";
import { ERRORS } from "../src/base/error-table.ts";
import type { RunId } from "../src/base/ids.ts";
import { parseUlid } from "../src/base/ids.ts";
import { describeField } from "../src/config/field.ts";
import type { FieldRule } from "../src/config/field.ts";
import { FLEET_FIELDS } from "../src/config/fleet-fields.ts";
import { ruleTexts } from "../src/config/rules.ts";
import { SECTIONS, SETTING_KEYS, settingOf, environmentName } from "../src/config/schema.ts";
import type { SettingKey } from "../src/config/schema.ts";
import type { Setting } from "../src/config/settings/setting.ts";
import { configTemplate } from "../src/commands/init.ts";
import { describeAllowed } from "../src/config/value.ts";
import { EVENTS, TOPICS } from "../src/observe/events.ts";
import type { Topic } from "../src/observe/events.ts";
import { manifestPage } from "./manifest-page.ts";
import { metricsPage } from "./metrics-page.ts";

interface Formats extends FormatConfig {
  readonly overrides: readonly { readonly files: readonly string[]; readonly options: FormatConfig }[];
}

const GENERATED = "<!-- Made by scripts/generate-docs.ts: change the table in the source, not this file. -->";
const EXAMPLE_RUN = parseUlid<RunId>("01M7QK69HAKARNT7E0B5TKE00H");

/** The generated documents, by their path in the repository, as they are formatted. */
export async function generateDocs(): Promise<ReadonlyMap<string, string>> {
  const pages = {
    "docs/errors.md": errorsPage(),
    "docs/CONFIGURATION.md": configurationPage(),
    "docs/EVENTS.md": eventsPage(),
    "docs/MACHINES.md": machinesPage(),
    "docs/plugins.md": manifestPage(GENERATED, markdownTable),
    "docs/metrics.md": metricsPage(GENERATED, markdownTable),
  };
  const documents = new Map<string, string>();
  for (const [path, page] of Object.entries(pages)) {
    const { code } = await format(path, page, formatOf(path));
    documents.set(path, code);
  }
  return documents;
}

/** How the formatter leaves a file. */
function formatOf(path: string): FormatConfig {
  const { overrides, ...all } = JSON.parse(readFileSync(repositoryFile(".oxfmtrc.json"), "utf8")) as Formats;
  return { ...all, ...overrides.find(({ files }) => files.includes(path))?.options };
}

/** Absolute path of a file of the repository. */
export function repositoryFile(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}

const MEANING_OF_RETRY = {
  never: "no",
  "same-leader": "yes",
  "new-leader": "yes, with the new leader",
} as const;

function errorsPage(): string {
  const codes = Object.values(EXIT).map((code) => [`${code}`, MEANING_OF_EXIT[code]]);
  const rows = Object.entries(ERRORS).map(([code, row]) => [
    `\`${code}\``,
    row.message,
    row.hint.replaceAll("{config}", ""),
    `${row.exit}`,
    MEANING_OF_RETRY[row.retry],
  ]);
  return `# Errors and exit codes

${GENERATED}

An error is one line on standard error, \`error: MESSAGE (HINT)\`. With \`--json\` standard output has it too:

\`\`\`json
{ "error": { "code": "…", "message": "…", "hint": "…" } }
\`\`\`

Programs go by the code, which does not change; the words may.

## Exit codes

${markdownTable(["Exit code", "Meaning"], codes)}

A coordinator that was fenced ends by SIGABRT and has none.

## Errors

\`{name}\` stands for a value. "Retry" says whether the same request may succeed later without anybody changing anything.

${markdownTable(["Code", "Message", "Hint", "Exit code", "Retry"], rows)}
`;
}

function configurationPage(): string {
  const sections = ["", ...SECTIONS].map((section) => {
    const keys = SETTING_KEYS.filter((key) => (key.includes(".") ? key.split(".", 1)[0] : "") === section);
    const title = section === "" ? "At the top of the file" : `\`[${section}]\``;
    return `### ${title}\n\n${settingsTable(keys)}`;
  });
  if (EXAMPLE_RUN === undefined) throw new Error("the example's run id is no ULID");
  return `# Configuration

${GENERATED}

One TOML file is read by the coordinator, by workers and by every other command: the one that \`--config\` names, else
\`rollout.toml\` in the working directory, which need not be there when variables and flags say everything. An environment
variable goes before the file, and a flag before both. A variable that is empty is not set. Everything is resolved once,
at start.

Whatever is unknown or not allowed is refused, with the key, the value, the place and what is allowed; nothing is
clamped.

- A duration is a text with a unit: \`"500ms"\`, \`"4s"\`, \`"2m"\`, \`"1h"\`, \`"30d"\`.
- A size is a text with a unit: \`"512B"\`, \`"64KiB"\`, \`"16MiB"\`, \`"1GiB"\`.
- An address is \`"host:port"\`; IPv6 stands in brackets: \`"[::1]:50051"\`.
- A path in the file is relative to the file; in a variable or a flag, to the working directory.
- A list in a variable or a flag has commas.

\`rollout init\` writes this file:

\`\`\`toml
${configTemplate(EXAMPLE_RUN).trimEnd()}
\`\`\`

A worker on another machine needs \`run_id\`, \`worker.coordinator_addr\` and \`worker.enrolment\`.

## Settings

${sections.join("\n\n")}

## Fleets

A [fleet](fleet.md) is a table \`[[fleet]]\`, of which there may be several. Their keys have no variables and no flags.

${fleetTable()}

## Rules between settings

${ruleTexts()
  .map((rule) => `- ${rule}`)
  .join("\n")}
`;
}

function fleetTable(): string {
  const rows = Object.entries<FieldRule & { readonly doc: string }>(FLEET_FIELDS).map(([key, field]) => {
    const { doc, required, default: initial } = field;
    const value = typeof initial === "string" ? initial : JSON.stringify(initial);
    const whole = required === true ? "required" : initial === undefined ? "none" : `\`${value}\``;
    return [`\`${key}\``, doc, whole, describeField(field).replace(/, such as.*/, "")];
  });
  return markdownTable(["Key", "Meaning", "Default", "Allowed"], rows);
}

function settingsTable(keys: readonly SettingKey[]): string {
  const rows = keys.map((key) => {
    const setting = settingOf(key);
    return [
      `\`${key}\``,
      setting.doc,
      defaultOf(setting),
      allowedOf(setting),
      `\`${environmentName(key)}\``,
      setting.roles.length === 0 ? "none" : `\`--${setting.flag}\``,
    ];
  });
  return markdownTable(["Setting", "Meaning", "Default", "Allowed", "Variable", "Flag"], rows);
}

function defaultOf(setting: Setting): string {
  if (setting.default !== undefined) return `\`${JSON.stringify(setting.default)}\``;
  if (setting.derived !== undefined) return setting.derived;
  if (setting.requiredFor === undefined) return "none";
  const unless = setting.unless === undefined ? "" : `, unless \`${setting.unless}\` is set`;
  return `none: needed by ${roles(setting.requiredFor)}${unless}`;
}

function roles(names: readonly string[]): string {
  return names.map((name) => (name === "operator" ? "other commands" : `${name}s`)).join(", ");
}

function allowedOf(setting: Setting): string {
  return setting.kind === "list" && setting.of === "topic"
    ? "a list of [topics](EVENTS.md)"
    : describeAllowed(setting, TOPICS).replace(/, such as.*/, "");
}

function eventsPage(): string {
  const overview = TOPICS.map((topic) => [
    `[\`${topic}\`](#${topic})`,
    EVENTS[topic].level,
    EVENTS[topic].doc,
  ]);
  return `# Events

${GENERATED}

\`rollout coordinator run\` and \`rollout worker run\` write what happens to standard output, one JSON object a line:

\`\`\`json
{ "ts": "2026-01-01T12:00:00.000Z", "run_id": "…", "kind": "domain", "topic": "worker_failed", "level": "warn" }
\`\`\`

followed by the fields of the topic, which stand below the table. Times in milliseconds end in \`_ms\`. Nothing is emitted for single items.

- A reader that is slow, stuck or gone holds nothing up: up to \`events.buffer\` waits in memory, and what does not fit is left
  out and counted in \`events_dropped\`, at the place where it would have stood.
- \`events.hide\` leaves topics out. Those that it cannot hide are \`coordinator_fenced\` and \`events_dropped\`.
- Before \`coordinator_fenced\`, which is written in an emergency, an empty or a broken line may stand. Skip lines that are no
  JSON.

${markdownTable(["Topic", "Level", "Meaning"], overview)}

${TOPICS.map(eventSection).join("\n\n")}
`;
}

function eventSection(topic: Topic): string {
  const { fields } = EVENTS[topic];
  const rows = Object.entries(fields).map(([field, meaning]) => [`\`${field}\``, meaning]);
  return `## ${topic}\n\n${markdownTable(["Field", "Meaning"], rows)}`;
}

function machinesPage(): string {
  const sections = ownMachines().map(({ name, model }) =>
    [
      `## \`${name}\`, version ${model.version ?? ""}`,
      `[machines/${name}.ts](../machines/${name}.ts)`,
      "```mermaid\n" + chartMermaid(model) + "```",
    ].join("\n\n"),
  );
  return [
    "# Machines",
    GENERATED,
    "Everything that has a lifecycle is one of these statecharts, and changes by its events only. What stands in brackets is a " +
      "guard; an event that no arrow names is ignored in that state. `rollout machines export NAME` prints the same, `--format svg` " +
      "draws a picture, and `rollout machines simulate NAME` walks through it event by event. All three take a machine of yours too " +
      "(`--plugin FILE`): a file that exports an XState 5 machine, or a plugin's manifest. The machines of durable actors ([actors.md](actors.md)) are yours: these charts know them as states of keys, and nothing more.",
    ...sections,
  ].join("\n\n");
}

function markdownTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(escapeCell).join(" | ")} |`;
  return [line(titles), line(titles.map(() => "---")), ...rows.map(line)].join("\n");
}

function escapeCell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

if (import.meta.main) {
  for (const [path, text] of await generateDocs()) {
    writeFileSync(repositoryFile(path), text);
    console.log(path);
  }
}
