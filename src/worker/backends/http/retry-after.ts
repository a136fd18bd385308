// How long a server asks to be left alone.

/** A day's quota is not waited for at once: after so long one request asks again. */
const WAIT_MAX_MS = 3_600_000;

/**
 * Milliseconds from now; undefined when the header says nothing that can be understood. Seconds or an HTTP date, which is
 * compared with `wallMs`.
 */
export function retryAfterMs(header: string | undefined, wallMs: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text)) return bounded(Number(text) * 1_000);
  const dateMs = /^[A-Z][a-z]+, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : bounded(dateMs - wallMs);
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), WAIT_MAX_MS);
}
