// Rows in aligned columns for a terminal. Texts of others (names, addresses) cannot move the cursor.
import { printable } from "../../base/safe-text.ts";

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  /** Numbers stand better to the right. */
  readonly align?: "left" | "right";
}

const GAP = "  ";

/** One line a row under a line of titles, without trailing spaces; ends with a line ending. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const cells = [
    columns.map((column) => column.title.toUpperCase()),
    ...rows.map((row) => columns.map((column) => printable(column.value(row)))),
  ];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => (line[at] ?? "").length)));
  const lines = cells.map((line) =>
    line
      .map((cell, at) => {
        const width = widths[at] ?? 0;
        return columns[at]?.align === "right" ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(GAP)
      .trimEnd(),
  );
  return `${lines.join("\n")}\n`;
}
