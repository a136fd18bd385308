// "Did you mean …?": the known name that a mistyped one is closest to.

/** The known name with the fewest edits from `name`; undefined when none is near enough to be worth a guess. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const budget = Math.max(2, Math.floor(name.length / 3));
  let best: { readonly name: string; readonly edits: number } | undefined;
  for (const candidate of known) {
    const edits = editDistance(name, candidate);
    if (edits <= budget && (best === undefined || edits < best.edits)) best = { name: candidate, edits };
  }
  return best?.name;
}

/** Insertions, deletions and replacements that turn one text into the other (Levenshtein, one row at a time). */
function editDistance(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const inserted = (current[column - 1] ?? 0) + 1;
      const deleted = (above[column] ?? 0) + 1;
      current.push(Math.min(replaced, inserted, deleted));
    }
    above = current;
  }
  return above[to.length] ?? from.length;
}
