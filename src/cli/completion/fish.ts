// Completion in fish: a line for each word and flag, with its summary, under the condition that the line has come to it.
import type { Completed, CompletedFlag, CompletedPlace } from "./command-tree.ts";

export function fishCompletion(program: string, places: readonly CompletedPlace[]): string {
  const known = places.filter(({ path }) => path !== "").map(({ path }) => quoted(path));
  return [
    `# Completion of ${program} in fish.`,
    `function __${program}_place`,
    "  set -l place",
    "  for word in (commandline -opc)[2..]",
    // Behind it stands the user's own command.
    '    if test "$word" = --; echo --; return; end',
    "    string match -q -- '-*' $word; and break",
    '    set -l next (string trim "$place $word")',
    `    contains -- "$next" ${known.join(" ")}; or break`,
    "    set place $next",
    "  end",
    '  echo "$place"',
    "end",
    `function __${program}_at; test (__${program}_place) = $argv[1]; end`,
    ...places.flatMap((place) => linesOf(program, place)),
    "",
  ].join("\n");
}

function linesOf(program: string, { path, next, flags, takesFiles }: CompletedPlace): string[] {
  const at = `complete -c ${program} -n ${quoted(`__${program}_at ${quoted(path)}`)}`;
  return [
    ...(takesFiles ? [] : [`${at} -f`]),
    ...next.map(({ word, summary }) => `${at} -a ${quoted(word)} -d ${quoted(summary)}`),
    ...flags.map((flag) => `${at} ${flagOptions(flag)}`),
  ];
}

function flagOptions({ names, summary, value }: CompletedFlag): string {
  const written = names.map((name) =>
    name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
  );
  return [...written, ...valueOptions(value), `-d ${quoted(summary)}`].join(" ");
}

function valueOptions(value: Completed | undefined): string[] {
  switch (value?.kind) {
    case "words":
      return ["-x", `-a ${quoted(value.words.join(" "))}`];
    case "file":
      return ["-r", "-F"];
    case "anything":
      return ["-x"];
    case undefined:
      return [];
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
