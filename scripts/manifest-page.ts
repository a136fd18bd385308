// The page about plugins: what it says of the fields of a manifest is made from their table.
import { BACKEND_KINDS, fieldsOf } from "../src/config/manifest-fields.ts";
import type { BackendKind, Field } from "../src/config/manifest-fields.ts";
import { describeField } from "../src/config/value.ts";

type MakeTable = (titles: readonly string[], rows: readonly (readonly string[])[]) => string;

const ABOUT: Readonly<Record<BackendKind, string>> = {
  mock: "Pretends to work: [mock](backends/mock.md).",
  command: "A process for each item: [command](backends/command.md).",
  process:
    "A process that loads its model once and reads items line by line: [process](backends/process.md).",
  http: "A server that speaks as OpenAI's does, or any URL: [http](backends/http.md).",
  module: "A function of a JavaScript or TypeScript file: [module](backends/module.md).",
  machine:
    "An XState machine, which goes on where it was after a preemption: [machine](backends/machine.md).",
  actor: "An XState machine for each key, whose state is kept from event to event: [actors](actors.md).",
};

export function manifestPage(generated: string, table: MakeTable): string {
  const sections = BACKEND_KINDS.map((kind) => sectionOf(kind, table));
  return `# Plugins

${generated}

A plugin is what executes the items of a run: a name, a version and a backend, written down in a manifest. The command line of
\`rollout run FILE -- CMD\` is one without a manifest: the plugin \`command\`, version 1.

\`\`\`toml
name = "infer"          # a to z, 0 to 9 and -
version = "1"           # any text of one line
backend = "process"     # ${BACKEND_KINDS.join(", ")}
item_timeout = "10m"    # optional: how long one attempt may take

[process]               # the table of that backend
command = ["python3", "infer.py"]
\`\`\`

\`rollout submit --plugin FILE\` says what the items are for, and \`rollout worker run --plugin FILE\` what a worker can execute; the flag
may be given several times there, each plugin with a name of its own. \`worker.plugins\` in \`rollout.toml\` says the same for both. A
worker gets the items of plugins that it has, by name. Without any manifest a worker has the plugin \`mock\`, and items are submitted for
it.

Relative paths are relative to the manifest, and its directory is where processes are started; \`working_directory\` names another one.
Anything unknown is refused with its line, and so is a value that is not allowed. The run's \`--item-timeout\` goes before the manifest's
\`item_timeout\`.

## The task

A run is of one task, the one of its first submission, and what the task is made of is part of each item's id: plugin name, backend, and
the fields that the tables below call part of the task. So a changed command is another run with other results, and a file that is
submitted again for the same task adds only what is new. Version, concurrency, times and where a server is started are no part of it:
the next version of a program goes on with the same items, and each result says which version made it. What a file that is
named contains is no part of it either; its name, as it is written in the manifest, is.

The environment that a manifest names is part of the task, because a model's name may be in it. What only concerns this machine
(\`CUDA_VISIBLE_DEVICES\`) belongs into the environment of the worker, which processes inherit. So do secrets.

## Another version while the run goes on

With \`--hot-reload\` a worker looks at the manifests of its plugins, at the files that the backends module, machine and actor load, and at the
first words of a command that are files, twice a second. When one has changed and stands still, the manifest is read again:

- Items that begin from then on are executed by the new plugin, and results say its version. Items that run end with what they
  began with; then that is closed. The worker says \`plugin_reloaded\`, and its heartbeats name the new version.
- A manifest that is not valid, a file that does not load, a plugin of another name: the old one stays, and the worker warns.
- Another task under another \`version\` comes beside the old one: next section. Under the same version it is refused, because results that
  name a version are all made by one task.

What a file imports is not looked at: change \`version\` in the manifest when you have changed that. Without \`--hot-reload\` a worker
reads its manifests once; drain it and start it again.

## Versions side by side

A worker may have several versions of one plugin, with other prompts, models or programs:

<!-- not run: a worker that has them is in test/e2e/versions-side-by-side.test.ts -->

\`\`\`sh
rollout worker run --plugin v1.toml --plugin v2.toml
rollout worker run --plugin v1.toml --plugin-dir ./plugins
\`\`\`

The first manifest of a name is the worker's own version: it executes every item that names no other, so a second version changes nothing by
itself. An item that names a version is executed by exactly that one; a worker that does not have it hands it back, and nobody is charged.

With \`--plugin-dir\` a version comes while the worker runs: each \`*.toml\` in that directory is looked at twice a second and taken up when it
has stood still. A link counts as the file that it leads to, for relative paths too. The directory and the file have to belong to you or to root,
with no right for others to write. A manifest that cannot be taken up (not valid, of a plugin that the worker does not have, another task
under a version that is there) is a warning in the worker's log; it never ends the worker. A version stays when its file goes, until the worker ends.
The workers of \`rollout run\` look at \`plugins\` in the run's directory.

A version is loaded when its first item comes. \`--loaded-versions\` says how many of one plugin are loaded at once, 2 unless said. With 1, for a
GPU that holds one model, the worker lets what runs end, closes one version, waits until that is gone, and loads the other. Neither that time
nor the time of loading counts against an item's time limit. A version that does not start is gone from this worker, and its items are handed
back; only a worker whose own version does not start ends.

## What a manifest may say

Beside \`name\`, \`version\`, \`backend\`, \`item_timeout\` and \`working_directory\` stands one table, that of the backend.

${sections.join("\n\n")}
`;
}

function defaultOf(field: Field): string {
  if (field.default !== undefined) return `\`${JSON.stringify(field.default)}\``;
  return field.required === true ? "none: it is needed" : "none";
}

function sectionOf(kind: (typeof BACKEND_KINDS)[number], table: MakeTable): string {
  const rows = fieldsOf(kind).map(([key, field]) => [
    `\`${key}\``,
    field.doc,
    defaultOf(field),
    describeField(field).replace(/, such as.*/, ""),
    field.identity === false ? "no" : "yes",
  ]);
  return `### ${kind}\n\n${ABOUT[kind]}\n\n${table(["Key", "Meaning", "Default", "Allowed", "Part of the task"], rows)}`;
}
