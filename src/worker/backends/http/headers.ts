// The headers that every request carries, and the secrets in them, which nothing that leaves this backend may show.
import { isSecretName, REDACTED } from "../../../base/safe-text.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Headers {
  /** By names in lower case. */
  readonly fields: Readonly<Record<string, string>>;
  /** Texts that came out of the environment. */
  readonly secrets: readonly string[];
}

export type FilledHeaders =
  | { readonly kind: "filled"; readonly headers: Headers }
  | { readonly kind: "refused"; readonly reason: string };

/** Shorter ones are found in any text: they are secrets where they stand as a word of their own, a little behind one that speaks of them. */
const SECRET_MIN_CHARACTERS = 6;
// oxfmt-ignore
const SPEAKS_OF_SECRETS = ["authorization", "bearer", "basic", "credential", "key", "passphrase", "password", "secret", "token"];
const NEAR_CHARACTERS = 40;
const UNFIT = /[\p{Cc}\u0100-\u{10ffff}]/u;

/** Puts the variables that `${NAME}` names into the texts of the manifest. */
export function fillHeaders(texts: Readonly<Record<string, string>>, env: Environment): FilledHeaders {
  const fields: Record<string, string> = {};
  const secrets: string[] = [];
  for (const [name, text] of Object.entries(texts)) {
    let missing: string | undefined;
    const value = text.replace(/\$\{(\w+)\}/g, (_whole, variable: string) => {
      const found = env[variable];
      if (found === undefined) missing = variable;
      else secrets.push(found);
      return found ?? "";
    });
    if (missing !== undefined)
      return refused(`the header ${name} needs the environment variable ${missing}, which is not set`);
    // A line break at the end is what reading a secret from a file leaves.
    fields[name.toLowerCase()] = value.trim();
    if (UNFIT.test(value.trim()))
      return refused(`what the environment gives for the header ${name} is not a text of one line`);
  }
  return { kind: "filled", headers: { fields, secrets: fitSecrets(secrets) } };
}

/** The values of the variables whose names say that they are secret. */
export function secretsOf(env: Environment): string[] {
  return fitSecrets(Object.entries(env).map(([name, value]) => (isSecretName(name) ? (value ?? "") : "")));
}

/** The text without the secrets. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce(
    (shown, secret) =>
      secret.length < SECRET_MIN_CHARACTERS
        ? shown.replace(shortSecret(secret), REDACTED)
        : shown.replaceAll(secret, REDACTED),
    text,
  );
}

function shortSecret(secret: string): RegExp {
  const words = SPEAKS_OF_SECRETS.map(inAnyCase).join("|");
  const literal = secret.replace(/\W/g, String.raw`\$&`);
  return new RegExp(
    String.raw`(?<=(?:${words})s?(?![A-Za-z])[^\n]{0,${NEAR_CHARACTERS}})(?<![\w-])${literal}(?![\w-])`,
    "g",
  );
}

function inAnyCase(word: string): string {
  return word.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

function fitSecrets(secrets: readonly string[]): string[] {
  const texts = new Set(secrets.map((secret) => secret.trim()));
  return [...texts].filter((secret) => secret !== "").sort((a, b) => b.length - a.length);
}

function refused(reason: string): FilledHeaders {
  return { kind: "refused", reason };
}
