// Text that came from elsewhere, made fit to be shown: no secret in it, nothing that a terminal would obey.

export const REDACTED = "[redacted]";

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
const DSN_PASSWORD = /([a-z0-9+.-]:\/\/[^\s:/@]*):[^\s/]+@/gi;
/** `https://token@host`: a user without a password is one; of ssh, which has keys, it is a name. */
const URL_USER = /\b((?:(?:git\+)?https?|git):\/\/)(?![^\s:/@]*:)[^\s/?#"']+@/gi;
/** Marks of a name whose value nobody should read; `max_tokens` and `tokenizer` are not such. */
const SECRET_NAME =
  "(?:passwd|password|passphrase|secret|credential|api[-_]?key|access[-_]?key|token(?![a-z]))";
const HAS_SECRET_NAME = new RegExp(SECRET_NAME, "i");
const QUERY_SECRET = new RegExp(
  `([?&](?=[\\w.-]*=[^\\s&#"'])[\\w.-]*${SECRET_NAME}[\\w.-]*=)[^\\s&#"']+`,
  "gi",
);
const AUTHORIZATION =
  /\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest)\s+)?[^\s"',;]+/gi;
const BEARER = /\b(bearer\s+)[\w.~+/=-]{8,}/gi;

/** Longer words are cut before they are searched, which may take the square of their length. */
const WORD_MAX_CHARACTERS = 1_024;
/** The start of a cut word that only its end would have shown to be a secret. */
const CUT_SECRET = /(:\/\/(?=[^\s/]*$)|\bbearer\s+(?=\S*$))\S*$/i;

const NAME = String.raw`[\w.-]*(?:${SECRET_NAME}|authorization)[\w.-]*`;
/** Words that are all value behind a name: `TOKEN=…`, `--env=TOKEN=…`, `--password=…`, `X-Api-Key: …`, `--user=bob:…`. */
const WHOLE_VARIABLE = /^((?:--?[\w-]+=)?[A-Z_][A-Z0-9_]*=).+$/s;
const WHOLE_NAMED = new RegExp(String.raw`^(${NAME}\s*[:=]\s*)\S.*$`, "is");
const WHOLE_USER = /^((?:-u|--(?:proxy-)?user=)[^:]*:).+$/is;
/** Words, or ends of words, behind which the next is all value. */
const BEFORE_SECRET = new RegExp(
  String.raw`(?:^|[\s"'])(?:--?${NAME}|${NAME}\s*[:=](?:\s*(?:basic|digest))?|bearer)\s*$`,
  "i",
);
const BEFORE_USER = /(?:^|[\s"'])(?:-u|--(?:proxy-)?user)\s*$/i;

/** As a shell reads it: what is quoted whole, or to the end if nothing closes it, else up to a blank or the end of the command. */
const SHELL_VALUE = `(?:${[
  String.raw`(?<=\\"\s*:\s*)\\"(?:[^"\\]|\\\\\\"|\\[^"])*(?:\\"|\\?$)`,
  String.raw`"(?:\\[\s\S]|[^"\\])*(?:["\\]|$)`,
  String.raw`\$'(?:\\[\s\S]|[^'\\])*(?:['\\]|$)`,
  String.raw`'[^']*(?:'|$)`,
  String.raw`\x60[^\x60]*(?:\x60|$)`,
  String.raw`\$\([^)]*(?:\)|$)`,
  String.raw`\\(?:[\s\S]|$)`,
  String.raw`[^\s"'\\\x60;|&)]`,
].join("|")})+`;
const SHELL_GAP = String.raw`(?:\s|\\\n)*`;
/** `$KEY` is not what it stands for. */
const SHELL_REFERENCE = String.raw`(?:\$\{?\w+\}?|"\$\{?\w+\}?")(?=[\s;|&)]|$)`;
/** `TOKEN=…` before a program or as an argument, by the capitals that variables have. */
const SHELL_VARIABLE = inShell(String.raw`(?<![\w$?&-])[A-Z_][A-Z0-9_]*=`, "g");
/** `--api-key …`, `--password=…`, `X-Api-Key: …`, `"api_key": …`. */
const SHELL_NAMED = inShell(
  String.raw`(?<![\w.-])(?:--?${NAME}\s${SHELL_GAP}(?!${SHELL_REFERENCE}|--?${NAME}(?:[=\s]|$))|${NAME}(?:\\?["'])?\s*[:=]${SHELL_GAP})`,
  "gi",
);
/** `-u bob:…` as curl has it. */
const SHELL_USER = new RegExp(
  String.raw`((?<![\w-])(?:-u|--(?:proxy-)?user(?:=|\s))${SHELL_GAP})(${SHELL_VALUE})`,
  "gi",
);

/** Values behind `head`: where the name stands right behind a quote, the value ends with it. */
function inShell(head: string, flags: string): RegExp {
  const goesOn = String.raw`(?=[^\s;|&)])[\s\S]+`;
  const inDouble = String.raw`(?<=")(${head})(?![\s"])(?:\\[\s\S]|[^"\\])+(?:["\\]${goesOn})?`;
  const inSingle = String.raw`(?<=')(${head})(?![\s'])[^']+(?:'${goesOn})?`;
  return new RegExp(`${inDouble}|${inSingle}|(${head})${SHELL_VALUE}`, flags);
}

/** Whether a variable or a setting of this name has a value that nobody should read: `HF_TOKEN`, `OPENAI_API_KEY`. */
export function isSecretName(name: string): boolean {
  return HAS_SECRET_NAME.test(name);
}

/** The text without private keys, authorization headers and what is secret in URLs. */
export function redactSecrets(text: string): string {
  return text
    .replace(PRIVATE_KEY, REDACTED)
    .replace(DSN_PASSWORD, `$1:${REDACTED}@`)
    .replace(URL_USER, `$1${REDACTED}@`)
    .replace(QUERY_SECRET, `$1${REDACTED}`)
    .replace(AUTHORIZATION, `$1${REDACTED}`)
    .replace(BEARER, `$1${REDACTED}`);
}

/**
 * A command line, to be looked at and not to be typed: without secrets, without the values of variables that it sets, of options
 * whose names say that they are secret, and of users' passwords. Rather hides too much than half of a value.
 */
export function redactCommand(words: readonly string[]): string {
  return words.map((word, index) => redactWord(word, words.slice(Math.max(0, index - 2), index))).join(" ");
}

function redactWord(word: string, previous: readonly string[]): string {
  const before = previous.join(" ").slice(-WORD_MAX_CHARACTERS);
  if (BEFORE_SECRET.test(before)) return REDACTED;
  const isCut = word.length > WORD_MAX_CHARACTERS;
  const text = isCut ? word.slice(0, WORD_MAX_CHARACTERS).replace(CUT_SECRET, `$1${REDACTED}`) : word;
  if (BEFORE_USER.test(before) && text.includes(":")) return hidePassword(text);
  for (const whole of [WHOLE_NAMED, WHOLE_VARIABLE, WHOLE_USER]) {
    if (whole.test(text)) return text.replace(whole, `$1${REDACTED}`);
  }
  return redactShell(text) + (isCut ? "…" : "");
}

function redactShell(text: string): string {
  return redactSecrets(text)
    .replace(SHELL_USER, (_, option: string, value: string) => option + hidePassword(value))
    .replace(SHELL_NAMED, `$1$2$3${REDACTED}`)
    .replace(SHELL_VARIABLE, `$1$2$3${REDACTED}`);
}

function hidePassword(user: string): string {
  const colon = user.indexOf(":");
  return colon < 0 ? user : `${user.slice(0, colon + 1).replace(/^["']/, "")}${REDACTED}`;
}

/**
 * Characters that a terminal obeys in place of showing them, and those without a shape that hide or reorder what stands beside
 * them: controls of both tables, marks of direction, and Unicode's other ends of lines. Joiners stay, as scripts and emoji need them.
 */
const OBEYED =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** One line without characters that a terminal obeys: each becomes visible text, `\n` or `\u001b`. */
export function printable(text: string): string {
  return text.replace(OBEYED, visible);
}

/**
 * The same for text of several lines: their ends, and tabs, stay. JSON keeps its meaning, only the spelling of its strings
 * changes: a character that is escaped stands within a string, and JSON reads the escape as that character.
 */
export function printableLines(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(OBEYED, (character) =>
      character === "\n" || character === "\t" ? character : visible(character),
    );
}

/**
 * `content`, whole lines or all that there is, as `stream` is to be given it: the one door for what others wrote (outputs, logs, names,
 * messages) on its way out of the process. A terminal is given text of which it obeys nothing; a file, a pipe and a program get the bytes
 * as they are.
 */
export function shownOn(stream: { readonly isTTY?: boolean }, content: string): string;
export function shownOn(
  stream: { readonly isTTY?: boolean },
  content: string | Uint8Array,
): string | Uint8Array;
export function shownOn(
  stream: { readonly isTTY?: boolean },
  content: string | Uint8Array,
): string | Uint8Array {
  if (stream.isTTY !== true) return content;
  return printableLines(typeof content === "string" ? content : Buffer.from(content).toString("utf8"));
}

function visible(character: string): string {
  return (
    NAMED[character] ?? Array.from({ length: character.length }, (_, at) => unitText(character, at)).join("")
  );
}

function unitText(character: string, at: number): string {
  return `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`;
}
