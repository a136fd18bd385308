// Numbers, times and names as a person reads them. Pure: a moment is given, never asked for.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `1,234,567`. */
export function countText(value: number): string {
  return WHOLE.format(value);
}

/** For an axis: `1.2M`. */
export function shortCount(value: number): string {
  return SHORT.format(value);
}

/** `0.4`, `12`, `1,204`: of things in a second. */
export function rateText(value: number): string {
  if (value > 0 && value < 10) return String(Math.round(value * 10) / 10);
  return countText(value);
}

/** `3 items`, `1 item`. */
export function countOf(value: number, one: string, many = `${one}s`): string {
  return `${countText(value)} ${value === 1 ? one : many}`;
}

/** The two largest units: `4 min 10 s`. */
export function durationText(ms: number): string {
  const left = Math.max(0, ms);
  if (left < 950) return `${Math.round(left / 10) / 100} s`;
  if (left < 10 * SECOND) return `${Math.round(left / 100) / 10} s`;
  if (left < MINUTE) return `${Math.round(left / SECOND)} s`;
  const [unit, name, smaller, smallerName] =
    left < HOUR
      ? ([MINUTE, "min", SECOND, "s"] as const)
      : left < DAY
        ? ([HOUR, "h", MINUTE, "min"] as const)
        : ([DAY, "d", HOUR, "h"] as const);
  const rest = Math.floor((left % unit) / smaller);
  return `${Math.floor(left / unit)} ${name}${rest === 0 ? "" : ` ${rest} ${smallerName}`}`;
}

/** For an estimate: the largest unit, and the next one where that is little. */
export function roughDuration(ms: number): string {
  const [number = "", unit = "", ...rest] = durationText(ms).split(" ");
  return [number, unit, ...(Number(number) < 10 ? rest : [])].join(" ");
}

/** An item's digest or another long id, cut so that a person still knows it again. */
export function shortName(id: string): string {
  return /^[0-9a-f]{64}$/.test(id) ? id.slice(0, 10) : id;
}

/** `failed_by_class` and the like: `out_of_memory` as `out of memory`. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

/** A share of the whole, with a digit after the point where that says something. */
export function percentText(part: number, whole: number): string {
  if (whole <= 0) return "0 %";
  const percent = (part / whole) * 100;
  // Never "100 %" while something is left.
  if (part < whole && percent > 99.9) return "99.9 %";
  if (part > 0 && percent < 0.1) return "under 0.1 %";
  return `${percent < 10 || percent > 99 ? Math.round(percent * 10) / 10 : Math.round(percent)} %`;
}

/** A value of a release's metric: a rate in percent, a number in its own unit. */
export function metricText(metric: string, value: number): string {
  const isRate = metric === "errors" || metric === "slower";
  const short = Number((isRate ? value * 100 : value).toPrecision(3)) + 0;
  return isRate ? `${short} %` : String(short);
}
