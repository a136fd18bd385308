// Fields of a file that a user wrote, by their rules: read strictly, and refused with the file, the line, the key and what is allowed.
import { dirname } from "node:path";
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import { printable } from "../base/safe-text.ts";
import { showValue } from "./gather.ts";
import type { FileSetting } from "./toml-file.ts";
import { describeField, parseField } from "./field.ts";
import type { FieldRule } from "./field.ts";
import type { Present, ValueOf } from "./value.ts";

export class FieldReader {
  readonly #file: string;
  readonly #settings: ReadonlyMap<string, FileSetting>;

  /** `file` is absolute: relative paths are relative to its directory. */
  constructor(file: string, settings: readonly FileSetting[]) {
    this.#file = file;
    this.#settings = new Map(settings.map((setting) => [setting.key, setting]));
  }

  get settings(): Iterable<FileSetting> {
    return this.#settings.values();
  }

  has(key: string): boolean {
    return this.#settings.has(key);
  }

  /** Throws `config_missing_key` or `config_invalid_value`. */
  read<Rule extends FieldRule>(key: string, rule: Rule): ValueOf<Rule> | Present<Rule> {
    const setting = this.#settings.get(key);
    if (setting === undefined) {
      if (rule.required === true) throw this.missing(key, describeField(rule));
      if (rule.default === undefined) return undefined as Present<Rule>;
    }
    const value = parseField(rule, setting === undefined ? rule.default : setting.value, dirname(this.#file));
    if (value === undefined) throw this.refusal(key, describeField(rule));
    return value as ValueOf<Rule>;
  }

  /** Where that key stands; the file alone when it does not. */
  sourceOf(key: string): string {
    return this.#settings.get(key)?.source ?? this.#file;
  }

  /** Why its table cannot do without that key. */
  missing(key: string, allowed: string): RolloutError {
    const source = this.sourceOf(key.slice(0, Math.max(0, key.lastIndexOf("."))));
    return failure("config_missing_key", { source, key, allowed });
  }

  /** Why the value of that key is not taken. */
  refusal(key: string, allowed: string): RolloutError {
    const setting = this.#settings.get(key);
    const value = shown(setting?.value ?? "");
    return failure("config_invalid_value", { source: this.sourceOf(key), key, value, allowed });
  }

  unknown({ key, source }: FileSetting, suggestion: string): RolloutError {
    return failure("config_unknown_key", { source, key: printable(key), suggestion });
  }
}

/** A table is shown by its keys alone: variables and headers have secrets as their values. */
function shown(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Date)
    return showValue(value);
  return `{ ${printable(Object.keys(value).join(", "))} }`;
}
