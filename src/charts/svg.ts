// A chart as SVG. States and transitions can be found by their `data-` attributes, so that a page can light them; all else that
// is known of them is shown on hovering. Colours are variables of CHART_STYLE: it follows the reader's light or dark scheme.
import { layOut, START_SIZE } from "./layout.ts";
import type { Layout, Way } from "./layout.ts";
import { transitionLabel } from "./model.ts";
import type { ChartModel, ChartState, ChartTransition } from "./model.ts";
import { LINE_HEIGHT, PADDING, pictureOf, TITLE_HEIGHT } from "./picture.ts";
import type { Arrow, Box, Line } from "./picture.ts";

/**
 * More would take minutes to lay out, and nobody could read it.
 * @internal
 */
export const MAX_DRAWN = 1_000;

/**
 * For the page that it stands in; a file of its own has it within.
 * @internal
 */
export const CHART_STYLE = `.chart { color-scheme: light dark; --ink: #1f2933; --quiet: #52606d; --edge: #7b8794; --paper: #ffffff; --group: #f5f7fa; --lit: #0b69a3; --lit-paper: #dcf1ff; }
@media (prefers-color-scheme: dark) { .chart { --ink: #e8edf2; --quiet: #a9b5c2; --edge: #8a97a6; --paper: #1c232b; --group: #12171d; --lit: #7cc8ff; --lit-paper: #12384f; } }
.chart text { paint-order: stroke; stroke: var(--group); stroke-width: 3px; stroke-linejoin: round; font: 11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--quiet); }
.chart .title { font: 600 13px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: var(--ink); }
.chart .box { fill: var(--paper); stroke: var(--edge); }
.chart .group > .box { fill: var(--group); }
.chart .region > .box { stroke-dasharray: 5 4; }
.chart .inner { fill: none; stroke: var(--edge); }
.chart .way { fill: none; stroke: var(--edge); }
.chart .head, .chart .start { fill: var(--edge); }
.chart .words:not(.group) text { stroke: none; }
.chart .lit > .box { fill: var(--lit-paper); stroke: var(--lit); stroke-width: 2; }
.chart .lit > .way { stroke: var(--lit); stroke-width: 2; }
.chart .lit > text { fill: var(--lit); }
`;

export interface SvgOptions {
  /** Whether it has its style within, as a file needs it that stands alone. */
  readonly isAlone: boolean;
  /** Ids of states that are lit; none unless said. */
  readonly lit?: ReadonlySet<string>;
}

const NONE_LIT: ReadonlySet<string> = new Set();

/** Ends with a line ending. Throws ChartTooLarge. */
export async function chartSvg(model: ChartModel, { isAlone, lit = NONE_LIT }: SvgOptions): Promise<string> {
  const count = model.states.length + model.transitions.length;
  if (count > MAX_DRAWN)
    throw new ChartTooLarge(`it has ${count} states and transitions, and ${MAX_DRAWN} at most are drawn`);
  const picture = pictureOf(model);
  const layout = await layOut(picture);
  const size = `width="${number(layout.width)}" height="${number(layout.height)}" viewBox="0 0 ${number(layout.width)} ${number(layout.height)}"`;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" ${size}>`,
    `<title>${text(`Statechart ${model.id}`)}</title>`,
    ...(isAlone ? [`<style>\n${CHART_STYLE}</style>`] : []),
    ...boxLines(picture.root, { layout, lit }, false),
    ...picture.arrows.flatMap((arrow) => arrowLines(arrow, layout)),
    ...wordLines(picture.root, layout),
    "</svg>",
  ];
  return `${lines.join("\n")}\n`;
}

/** The message says how large. */
export class ChartTooLarge extends Error {}

function boxLines(
  box: Box,
  shown: { readonly layout: Layout; readonly lit: ReadonlySet<string> },
  isRegion: boolean,
): string[] {
  const { layout, lit } = shown;
  const { state, children, start } = box;
  const place = layout.boxes.get(state.id);
  if (place === undefined) return [];
  const { x, y, width, height } = place;
  const kind = children.length === 0 ? state.kind : `group ${state.kind}`;
  const rectangle = (className: string, inset: number): string =>
    `<rect class="${className}" x="${number(x + inset)}" y="${number(y + inset)}" width="${number(width - 2 * inset)}" height="${number(height - 2 * inset)}" rx="${8 - inset}"/>`;
  const dot = start === null ? undefined : layout.boxes.get(start.id);
  return [
    `<g class="state ${kind}${isRegion ? " region" : ""}${lit.has(state.id) ? " lit" : ""}" data-state="${text(state.id)}" data-path="${text(state.path)}">`,
    `<title>${text(stateDetails(state))}</title>`,
    rectangle("box", 0.5),
    ...(state.kind === "final" ? [rectangle("inner", 3.5)] : []),
    "</g>",
    ...(dot === undefined
      ? []
      : [
          `<circle class="start" cx="${number(dot.x + START_SIZE / 2)}" cy="${number(dot.y + START_SIZE / 2)}" r="${START_SIZE / 2}"/>`,
        ]),
    ...children.flatMap((child) => boxLines(child, shown, state.kind === "parallel")),
  ];
}

/** After the arrows, some of which pass below them. */
function wordLines(box: Box, layout: Layout): string[] {
  const place = layout.boxes.get(box.state.id);
  if (place === undefined) return [];
  const [x, y] = [place.x + PADDING, place.y + TITLE_HEIGHT];
  return [
    `<g class="words${box.children.length === 0 ? "" : " group"}" data-of="${text(box.state.id)}">`,
    `<text class="title" x="${number(x)}" y="${number(y)}">${text(titleOf(box))}</text>`,
    ...textLines(box.lines, x, y + LINE_HEIGHT + 2),
    "</g>",
    ...box.children.flatMap((child) => wordLines(child, layout)),
  ];
}

function titleOf({ title, state }: Box): string {
  if (state.history === null) return title;
  return `${title} ${state.history === "deep" ? "(H*)" : "(H)"}`;
}

function arrowLines(arrow: Arrow, layout: Layout): string[] {
  const label = layout.labels.get(arrow.id);
  const ways = layout.ways.get(arrow.id) ?? [];
  return [
    `<g class="arrow" data-source="${text(arrow.source)}" data-target="${text(arrow.target)}">`,
    ...ways.flatMap((way) => [
      `<path class="way" d="${pathOf(way)}"/>`,
      `<path class="head" d="${headOf(way)}"/>`,
    ]),
    ...(label === undefined ? [] : textLines(arrow.lines, label.x + PADDING / 2, label.y + LINE_HEIGHT - 4)),
    "</g>",
  ];
}

function textLines(lines: readonly Line[], x: number, y: number): string[] {
  return lines.map(({ text: words, transition }, at) => {
    const line = `<text x="${number(x)}" y="${number(y + at * LINE_HEIGHT)}">${text(words)}</text>`;
    if (transition === undefined) return line;
    const details = text(transitionDetails(transition));
    return `<g class="transition" data-transition="${text(transition.id)}"><title>${details}</title>${line}</g>`;
  });
}

/** Right angles with their corners taken off. */
function pathOf(way: Way): string {
  return way
    .map(([x, y], at) => {
      const [before, after] = [way[at - 1], way[at + 1]];
      if (before === undefined) return `M${number(x)} ${number(y)}`;
      if (after === undefined) return `L${number(x)} ${number(y)}`;
      const [fromX, fromY] = toward([x, y], before);
      const [toX, toY] = toward([x, y], after);
      return `L${number(fromX)} ${number(fromY)}Q${number(x)} ${number(y)} ${number(toX)} ${number(toY)}`;
    })
    .join("");
}

/** Where the curve around a corner begins on the way to the next one. */
function toward([x, y]: Way[number], [otherX, otherY]: Way[number]): Way[number] {
  const distance = Math.hypot(otherX - x, otherY - y);
  const share = distance === 0 ? 0 : Math.min(6, distance / 2) / distance;
  return [x + (otherX - x) * share, y + (otherY - y) * share];
}

function headOf(way: Way): string {
  const [end, before] = [way.at(-1), way.at(-2)];
  if (end === undefined || before === undefined) return "";
  const length = Math.hypot(end[0] - before[0], end[1] - before[1]) || 1;
  const [alongX, alongY] = [(end[0] - before[0]) / length, (end[1] - before[1]) / length];
  const corner = (side: number): string =>
    `${number(end[0] - 8 * alongX - side * alongY)} ${number(end[1] - 8 * alongY + side * alongX)}`;
  return `M${number(end[0])} ${number(end[1])}L${corner(4)}L${corner(-4)}Z`;
}

/** All that is known of a state. */
function stateDetails(state: ChartState): string {
  return [
    `${state.path === "" ? state.id : state.path} (${state.kind})`,
    ...(state.description === null ? [] : [state.description]),
    ...(state.tags.length === 0 ? [] : [`tags: ${state.tags.join(", ")}`]),
    ...(state.entry.length === 0 ? [] : [`entry: ${state.entry.join(", ")}`]),
    ...(state.exit.length === 0 ? [] : [`exit: ${state.exit.join(", ")}`]),
    ...state.invokes.map(({ id, source }) => `invoke: ${source} as ${id}`),
  ].join("\n");
}

/** All that is known of a transition. */
function transitionDetails(transition: ChartTransition): string {
  const { targets, actions, isInternal, description } = transition;
  return [
    transitionLabel(transition),
    ...(description === null ? [] : [description]),
    targets.length === 0 ? "stays" : `to ${targets.join(", ")}${isInternal ? ", within its source" : ""}`,
    ...(actions.length === 0 ? [] : [`actions: ${actions.join(", ")}`]),
  ].join("\n");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text and values of attributes: markup is taken away, and what XML forbids replaced. */
function text(value: string): string {
  return value
    .toWellFormed()
    .replace(/[^\t\n\u{20}-\u{7e}\u{a0}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\u{fffd}")
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

function number(value: number): string {
  return String(Math.round(value * 10) / 10);
}
