// Shares as people write them: `"1%"`, `"12.5%"`, of nothing to all.

/** Parts of a million that are told apart: a share is read back as it was written. */
const PARTS = 1e6;

/** Between 0 and 1; undefined when the text is no percentage up to 100, or has more than four decimals. */
export function parsePercent(text: string): number | undefined {
  const [, digits] = /^(\d{1,3}(?:\.\d{1,4})?)%$/.exec(text) ?? [];
  const share = Math.round((Number(digits) / 100) * PARTS) / PARTS;
  return share <= 1 ? share : undefined;
}

/** The text that `parsePercent` reads back as the same, for a share that it has read. */
export function formatPercent(share: number): string {
  return `${Math.round(share * 100 * 1e4) / 1e4}%`;
}
