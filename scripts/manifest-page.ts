// The page about plugins: what it says of the fields of a manifest is made from their table.
import { BACKEND_KINDS, fieldsOf } from "../src/config/manifest-fields.ts";
import type { BackendKind, Field } from "../src/config/manifest-fields.ts";
import { describeField } from "../src/config/field.ts";

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

A plugin executes the items of a run. A manifest names it: name, version and backend. The command line of
\`rollout run FILE -- CMD\` is a plugin without a manifest: \`command\`, version 1.

\`\`\`toml
name = "infer"          # a to z, 0 to 9 and -
version = "1"           # any text of one line
backend = "process"     # ${BACKEND_KINDS.join(", ")}
item_timeout = "10m"    # optional: how long one attempt may take

[process]               # the table of that backend
command = ["python3", "infer.py"]
\`\`\`

\`rollout submit --plugin FILE\` names the plugin of the items, and \`rollout worker run --plugin FILE\` a plugin of a worker; a worker
may have several. \`worker.plugins\` in \`rollout.toml\` sets both. A
worker gets the items of its plugins, by name. Without a manifest, workers have the plugin \`mock\`, and items are submitted for
it.

Paths are relative to the manifest. Processes start in the manifest's directory, or in \`working_directory\`.
An unknown key and a value that is not allowed are refused with their line. The run's \`--item-timeout\` replaces the manifest's
\`item_timeout\`.

## The task

A run has one task, the one of its first submission. The task is the plugin name, the backend, and
the fields that the tables below call part of the task; it is part of each item's id. So a changed command needs another run or a [release](releases.md), and a file that is
submitted again for the same task adds only new lines. Version, concurrency, times and a server's host are not part of the task:
the next version of a program goes on with the same items, and each result says which version made it. The name of a file in the
manifest is part of the task, its content is not.

\`env\` is part of the task (not of \`http\` and \`actor\`), because it may have a model's name. Put what concerns only this machine
(\`CUDA_VISIBLE_DEVICES\`), and secrets, into the environment of the worker, which processes inherit.

## Another version while the run goes on

With \`--hot-reload\` a worker looks at the manifests of its plugins, at the files that the backends module, machine and actor load, and at the
first words of a command that are files, twice a second. When one has changed and stands still, the manifest is read again:

- The new plugin executes items that begin from then on. Running items end with the old one, which is then closed. The worker emits
  \`plugin_reloaded\`, and its heartbeats name the new version.
- If the manifest is not valid, a file does not load, or the plugin has another name, the old one stays, and the worker warns.
- Another task under another \`version\` is taken up beside the old one: see the next section. Under the same version it is refused, because
  one version has one task.

The worker does not look at imported files: when you change one, change \`version\` in the manifest. Without \`--hot-reload\` a worker
reads its manifests once; drain it and start it again.

## Versions side by side

A worker may have several versions of one plugin, with other prompts, models or programs:

<!-- not run: a worker that has them is in test/e2e/versions-side-by-side.test.ts -->

\`\`\`sh
rollout worker run --plugin v1.toml --plugin v2.toml
rollout worker run --plugin v1.toml --plugin-dir ./plugins
\`\`\`

The first manifest of a name is the worker's own version: it executes every item that names no version, so a second version changes nothing by
itself. Exactly the version that an item names executes it; a worker without that version hands the item back, uncharged.

With \`--plugin-dir\` you add a version while the worker runs: it looks at each \`*.toml\` in that directory twice a second, and takes it up when it
no longer changes. A link counts as the file that it leads to, also for relative paths. The directory and the file must belong to you or to root,
and others must not have the right to write. A manifest that cannot be taken up (not valid, of a plugin that the worker does not have, another task
under a version that is there) is a warning in the worker's log; it never ends the worker. A version stays when its file goes, until the worker ends.
The workers of \`rollout run\` look at \`plugins\` in the run's directory.

A version is loaded when its first item comes. \`--loaded-versions\` (default 2, 1 to 4) is the number of versions of one plugin that are loaded at once. With 1, for a
GPU that holds one model, the worker lets its items end, closes one version, waits until that is gone, and loads the other. That time
does not count against an item's time limit. A version that does not start is removed from this worker, and its items are handed
back; a worker ends only when its own version does not start.

## Keys of a manifest

\`name\`, \`version\`, \`backend\`, \`item_timeout\`, \`working_directory\`, and one table, that of the backend.

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
