// A command line, before any command looks at it. Words after `--` belong to the user's own command and are
// never read as flags, arguments or a command's name.

export interface SplitArguments {
  /** Ours. */
  readonly own: readonly string[];
  /** Words after `--`; undefined when there is no `--`. */
  readonly commandLine: readonly string[] | undefined;
}

export function splitAtDashes(argv: readonly string[]): SplitArguments {
  const at = argv.indexOf("--");
  if (at === -1) return { own: argv, commandLine: undefined };
  return { own: argv.slice(0, at), commandLine: argv.slice(at + 1) };
}

/** Whether results and errors are for a program to read. Known before the arguments are, so that their errors are too. */
export function wantsJson(argv: readonly string[]): boolean {
  return splitAtDashes(argv).own.includes("--json");
}

/**
 * The configuration as the user has named it; undefined: the default. The last one counts, as it does for the parser. Known before
 * the arguments are too.
 */
export function namedConfig(argv: readonly string[]): string | undefined {
  const { own } = splitAtDashes(argv);
  let named: string | undefined;
  for (const [at, word] of own.entries()) {
    if (word === "-c" || word === "--config") named = own[at + 1];
    else if (word.startsWith("--config=")) named = word.slice("--config=".length);
    else if (word.startsWith("-c")) named = word.slice("-c".length).replace(/^=/, "");
  }
  return named;
}

export function wantsHelp(argv: readonly string[]): boolean {
  return splitAtDashes(argv).own.some((word) => word === "--help" || word === "-h");
}

/** The words before the first flag: where a command's name is looked for. */
export function leadingWords(argv: readonly string[]): string[] {
  const { own } = splitAtDashes(argv);
  const firstFlag = own.findIndex((word) => word.startsWith("-"));
  return own.slice(0, firstFlag === -1 ? own.length : firstFlag);
}
