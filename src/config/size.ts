// Sizes as people write them: a number and a binary unit (`"512B"`, `"64KiB"`, `"16MiB"`, `"1GiB"`).

const UNITS_BYTES = { GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10, B: 1 } as const;

function isUnit(text: string | undefined): text is keyof typeof UNITS_BYTES {
  return text !== undefined && Object.hasOwn(UNITS_BYTES, text);
}

/** Bytes; undefined when the text is no size, or no whole number of bytes. */
export function parseSizeBytes(text: string): number | undefined {
  const match = /^(\d{1,12}(?:\.\d{1,6})?)([A-Za-z]+)$/.exec(text);
  const unit = match?.[2];
  if (!isUnit(unit)) return undefined;
  const bytes = Number(match?.[1]) * UNITS_BYTES[unit];
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
