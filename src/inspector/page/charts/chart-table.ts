// A chart as tables: for a screen reader, for a chart that is too large to be drawn, and for whoever likes to read.
import type { ChartPicture } from "../../page-messages.ts";
import { make } from "../dom.ts";

/** More would stop the browser; a chart of this size is read by a program. */
const ROWS_MAX = 500;

/** Made when it is opened. */
export function chartTable(picture: ChartPicture): HTMLDetailsElement {
  const { states, transitions } = picture;
  const summary = make(
    "summary",
    {},
    `As a table: ${states.length} states, ${transitions.length} transitions`,
  );
  const details = make("details", { class: "as-table" }, summary);
  const fill = (): void => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(
      table(
        `States of ${picture.name}`,
        ["State", "Kind", "Begins in"],
        states.map(({ id, path, kind, initial }) => [path === "" ? id : path, kind, initial ?? ""]),
      ),
      table(
        `Transitions of ${picture.name}`,
        ["From", "Event", "Guard", "To"],
        transitions.map(({ source, event, guard, targets }) => [
          ...[source, event, guard ?? ""],
          targets.length === 0 ? "stays" : targets.join(", "),
        ]),
      ),
    );
  };
  details.addEventListener("toggle", fill);
  return details;
}

export function table(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): HTMLElement {
  const head = make("tr", {}, ...heads.map((words) => make("th", { scope: "col" }, words)));
  const body = rows
    .slice(0, ROWS_MAX)
    .map(([first = "", ...others]) =>
      make("tr", {}, make("th", { scope: "row" }, first), ...others.map((words) => make("td", {}, words))),
    );
  const more = rows.length > ROWS_MAX ? [`, the first ${ROWS_MAX} of ${rows.length}`] : [];
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    make(
      "table",
      {},
      make("caption", {}, caption, ...more),
      make("thead", {}, head),
      make("tbody", {}, ...body),
    ),
  );
}
