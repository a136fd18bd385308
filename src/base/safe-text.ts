// What may be shown of a text that came from elsewhere: no secret in it, nothing that a terminal would obey.

export const REDACTED = "[redacted]";

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
const DSN_PASSWORD = /\b([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s/@]+@/gi;
const AUTHORIZATION =
  /\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest)\s+)?[^\s"',;]+/gi;
const BEARER = /\b(bearer\s+)[\w.~+/=-]{8,}/gi;

/** The text without private keys, authorization headers and passwords in URLs. */
export function redactSecrets(text: string): string {
  return text
    .replace(PRIVATE_KEY, REDACTED)
    .replace(DSN_PASSWORD, `$1:${REDACTED}@`)
    .replace(AUTHORIZATION, `$1${REDACTED}`)
    .replace(BEARER, `$1${REDACTED}`);
}

/** One line without control characters: `\n` and the start of a terminal's escape sequence become visible text. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\r") return "\\r";
    if (character === "\t") return "\\t";
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
