// Fills an item into a command: `{}` is its payload as text, `{.field}` and `{.field.inner}` what its JSON holds there. A
// placeholder in one more pair of braces stands for itself: `{{}}` is `{}`. Every other brace stays.
//
// Keeps true: what an item holds is never read as shell: there it arrives as parameters.
import { formatJson, memberOf, parseJson } from "../../../base/exact-json.ts";

export type Filled =
  | { readonly kind: "filled"; readonly command: readonly string[] }
  /** The item lacks what the command names. */
  | { readonly kind: "lacking"; readonly message: string };

const PLACEHOLDER = /\{(\{(?:\.[\w-]+)*\})\}|\{((?:\.[\w-]+)+|)\}/g;

/** Whether there is anything in it to fill in. */
export function isTemplate(text: string): boolean {
  return [...text.matchAll(PLACEHOLDER)].some(([, literal]) => literal === undefined);
}

/** Each word by itself: what is filled in is never cut into several. */
export function fillCommand(words: readonly string[], payload: Uint8Array): Filled {
  const fields = new Fields(payload);
  const command = words.map((word) =>
    !word.includes("{")
      ? word
      : word.replace(PLACEHOLDER, (_, literal?: string, path?: string) => literal ?? fields.text(path ?? "")),
  );
  return fields.lack === undefined ? { kind: "filled", command } : { kind: "lacking", message: fields.lack };
}

/**
 * The command that has `/bin/sh` execute `text`. Wherever a placeholder stands, quoted or not, its value is one word, or a part of
 * one.
 */
export function fillShellText(text: string, payload: Uint8Array): Filled {
  const fields = new Fields(payload);
  const values: string[] = [];
  let quote = "";
  let at = 0;
  const script = text.replace(PLACEHOLDER, (whole, literal?: string, path?: string, offset?: number) => {
    quote = quoteAfter(text.slice(at, offset), quote);
    at = (offset ?? 0) + whole.length;
    if (literal !== undefined) return literal;
    const parameter = `\${${values.push(fields.text(path ?? ""))}}`;
    if (quote === '"') return parameter;
    return quote === "'" ? `'"${parameter}"'` : `"${parameter}"`;
  });
  if (fields.lack !== undefined) return { kind: "lacking", message: fields.lack };
  return { kind: "filled", command: ["/bin/sh", "-c", script, "sh", ...values] };
}

/** The quote that is open behind a piece of shell text: `"`, `'`, or none. */
function quoteAfter(piece: string, before: string): string {
  let quote = before;
  for (let at = 0; at < piece.length; at++) {
    const character = piece[at] ?? "";
    if (character === "\\" && quote !== "'") at++;
    else if (quote === character) quote = "";
    else if (quote === "" && (character === '"' || character === "'")) quote = character;
  }
  return quote;
}

/** Reads the payload when it is first asked for. */
class Fields {
  /** The first thing asked for that the item lacks; undefined when it has all. */
  lack: string | undefined;
  readonly #payload: Uint8Array;
  #text: string | undefined;
  #json: { readonly value: unknown } | undefined;

  constructor(payload: Uint8Array) {
    this.#payload = payload;
  }

  /** "" for what is not there. `path` is "" or `.field.inner`. */
  text(path: string): string {
    const text = this.#whole();
    if (path === "" || this.lack !== undefined) return text;
    this.#json ??= { value: parseJson(text) };
    let { value } = this.#json;
    if (value === undefined) return this.#lacks(`the item is not JSON, so it has no field ${path.slice(1)}`);
    for (const name of path.slice(1).split(".")) value = memberOf(value, name);
    if (value === undefined) return this.#lacks(`the item has no field ${path.slice(1)}`);
    return typeof value === "string" ? value : formatJson(value);
  }

  #whole(): string {
    if (this.#text !== undefined) return this.#text;
    try {
      this.#text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.#payload);
    } catch {
      return this.#lacks("the item is not valid UTF-8, so it cannot be an argument");
    }
    return this.#text;
  }

  #lacks(what: string): "" {
    this.lack ??= what;
    return "";
  }
}
