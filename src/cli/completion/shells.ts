// Completion in bash and zsh: one function that walks over the words of a command's name, then offers what may follow.
// The two differ in how they say what the words are and what they offer.
import type { Completed, CompletedPlace, CompletedFlag } from "./command-tree.ts";

export function bashCompletion(program: string, places: readonly CompletedPlace[]): string {
  const name = `_${program}`;
  return [
    `# Completion of ${program} in bash.`,
    `${name}() {`,
    '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" path="" word i',
    "  COMPREPLY=()",
    "  for ((i = 1; i < COMP_CWORD; i++)); do",
    '    word="${COMP_WORDS[i]}"',
    ...walk(places),
    "  done",
    ...offers(places, {
      words: (words) => `COMPREPLY=($(compgen -W '${words}' -- "$cur"))`,
      files: 'COMPREPLY=($(compgen -f -- "$cur"))',
    }),
    "}",
    `complete -o filenames -F ${name} ${program}`,
    "",
  ].join("\n");
}

export function zshCompletion(program: string, places: readonly CompletedPlace[]): string {
  const name = `_${program}`;
  return [
    `#compdef ${program}`,
    `# Completion of ${program} in zsh.`,
    `${name}() {`,
    // `path` is tied to $PATH in zsh.
    '  local cur="${words[CURRENT]}" prev="${words[CURRENT-1]}" place="" word i',
    "  for ((i = 2; i < CURRENT; i++)); do",
    '    word="${words[i]}"',
    ...walk(places).map(inZsh),
    "  done",
    ...offers(places, { words: (words) => `compadd -- ${words}`, files: "_files" }).map(inZsh),
    "}",
    `if [ "$funcstack[1]" = "${name}" ]; then ${name} "$@"; else compdef ${name} ${program}; fi`,
    "",
  ].join("\n");
}

function inZsh(line: string): string {
  return line
    .replaceAll("$path", "$place")
    .replaceAll("${path:+$place }", "${place:+$place }")
    .replaceAll("path=", "place=");
}

/** The body of the loop that finds where in the tree the line is. Behind `--` stands the user's own command. */
function walk(places: readonly CompletedPlace[]): string[] {
  const known = places.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  return [
    '    [[ "$word" == -- ]] && { path="--"; break; }',
    '    [[ "$word" == -* ]] && break',
    '    case "${path:+$path }$word" in',
    `      ${known.join("|")}) path="\${path:+$path }$word" ;;`,
    "      *) break ;;",
    "    esac",
  ];
}

interface Offering {
  readonly words: (words: string) => string;
  readonly files: string;
}

function offers(places: readonly CompletedPlace[], { words, files }: Offering): string[] {
  const values = [...valueCases(places, { words, files })];
  const rest = places.flatMap(({ path, next, flags, takesFiles }) => {
    const names = flags.flatMap((flag) => flag.names).join(" ");
    const following = next.map(({ word }) => word).join(" ");
    const plain = [
      ...(following === "" ? [] : [words(following)]),
      ...(takesFiles && following === "" ? [files] : []),
    ];
    return [
      `    "${path}")`,
      `      if [[ "$cur" == -* ]]; then ${words(names)}; else ${plain.join("; ") || ":"}; fi ;;`,
    ];
  });
  return [
    ...(values.length === 0 ? [] : ['  case "$path $prev" in', ...values, "  esac"]),
    '  case "$path" in',
    ...rest,
    `    *) ${files} ;;`,
    "  esac",
  ];
}

/** One case for all flags that are followed by the same. */
function valueCases(places: readonly CompletedPlace[], { words, files }: Offering): string[] {
  const patterns = new Map<string, string[]>();
  for (const { path, flags } of places)
    for (const { names, value } of flags) {
      if (value === undefined) continue;
      const offer = offerOf(value, { words, files });
      const patternsOfOffer = patterns.get(offer) ?? [];
      patterns.set(offer, [...patternsOfOffer, ...names.map((name) => `"${path} ${name}"`)]);
    }
  return [...patterns].map(([offer, cases]) => `    ${cases.join("|")}) ${offer}; return ;;`);
}

function offerOf(value: Completed, { words, files }: Offering): string {
  switch (value.kind) {
    case "words":
      return words(value.words.join(" "));
    case "file":
      return files;
    case "anything":
      return ":";
  }
}

// Completion in fish: a line for each word and flag, with its summary, under the condition that the line has come to it.

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
