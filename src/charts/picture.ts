// A picture of a chart before it has places: boxes within boxes, arrows between them, and how large the texts in it are. Texts are
// measured by counting, so that a picture is the same on every machine.
import { childrenOf, rootOf, transitionLabel } from "./model.ts";
import type { ChartModel, ChartState, ChartTransition } from "./model.ts";

/** A line of text in the picture; with a transition when it stands for one. */
export interface Line {
  readonly text: string;
  readonly transition?: ChartTransition;
}

/** A state, with what stands in it. */
export interface Box {
  readonly state: ChartState;
  readonly title: string;
  /** Below the title: actors and actions, and transitions that leave the state as it is. */
  readonly lines: readonly Line[];
  /** In the order of the chart. */
  readonly children: readonly Box[];
  readonly width: number;
  readonly height: number;
  /** The id of the dot at which it begins, and of the box that this leads to. */
  readonly start: { readonly id: string; readonly target: string } | null;
}

/** All transitions from one state to another; none where a state begins. */
export interface Arrow {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly lines: readonly Line[];
  readonly width: number;
  readonly height: number;
}

export interface Picture {
  readonly root: Box;
  readonly arrows: readonly Arrow[];
}

export const TITLE_HEIGHT = 20;
export const LINE_HEIGHT = 15;
export const PADDING = 10;
const TITLE_CHARACTER = 8.8;
const LINE_CHARACTER = 6.7;
/** Longer texts are cut; whole they stand in what is shown on hovering. */
const MAX_CHARACTERS = 60;
const MIN_WIDTH = 60;
/** More would hide what is around them. */
const MAX_LINES = 40;

export function pictureOf(model: ChartModel): Picture {
  const children = childrenOf(model);
  const own = Map.groupBy(model.transitions, ({ source }) => source);
  const box = (state: ChartState): Box => {
    const staying = (own.get(state.id) ?? []).filter(({ targets }) => targets.length === 0);
    const lines = shortened([
      ...state.invokes.map(({ id, source }) => ({
        text: cut(`invoke ${source === "inline" ? id : source}`),
      })),
      ...(state.entry.length === 0 ? [] : [{ text: cut(`entry / ${state.entry.join(", ")}`) }]),
      ...(state.exit.length === 0 ? [] : [{ text: cut(`exit / ${state.exit.join(", ")}`) }]),
      ...staying.map((transition) =>
        transition.actions.length === 0
          ? { text: cut(`ignores ${transitionLabel(transition)}`), transition }
          : lineOf(transition),
      ),
    ]);
    const title = cut(state.key);
    const isWhole = state.parent === null;
    const start =
      state.kind === "compound" && state.initial !== null
        ? { id: `${state.id}:initial`, target: state.initial }
        : null;
    return {
      ...{ state, title: isWhole && model.version !== null ? cut(`${title} ${model.version}`) : title },
      ...{ lines, start, children: (children.get(state.id) ?? []).map(box), ...sizeOf(title, lines) },
    };
  };
  return { root: box(rootOf(model)), arrows: [...startsOf(model), ...arrowsOf(model)] };
}

function startsOf(model: ChartModel): Arrow[] {
  return model.states.flatMap(({ id, kind, initial }) => {
    if (initial === null) return [];
    const source = kind === "compound" ? `${id}:initial` : id;
    return [{ id: `${source}>${initial}`, source, target: initial, lines: [], width: 0, height: 0 }];
  });
}

function arrowsOf(model: ChartModel): Arrow[] {
  const pairs = model.transitions.flatMap((transition) =>
    transition.targets.map((target) => ({ source: transition.source, target, transition })),
  );
  const groups = Map.groupBy(pairs, ({ source, target }) => JSON.stringify([source, target]));
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { source, target } = first;
    const lines = shortened(group.map(({ transition }) => lineOf(transition)));
    const width = widthOf(lines) + PADDING;
    return [{ id: `${source}>${target}`, source, target, lines, width, height: lines.length * LINE_HEIGHT }];
  });
}

function lineOf(transition: ChartTransition): Line {
  return { text: cut(transitionLabel(transition)), transition };
}

/** All of them are in the model; a picture has room for so many. */
function shortened(lines: readonly Line[]): readonly Line[] {
  if (lines.length <= MAX_LINES) return lines;
  return [...lines.slice(0, MAX_LINES - 1), { text: `and ${lines.length - MAX_LINES + 1} more` }];
}

function sizeOf(title: string, lines: readonly Line[]): { readonly width: number; readonly height: number } {
  const inner = Math.max(MIN_WIDTH, columnsOf(title) * TITLE_CHARACTER, widthOf(lines));
  return { width: inner + 2 * PADDING, height: TITLE_HEIGHT + lines.length * LINE_HEIGHT + PADDING };
}

function widthOf(lines: readonly Line[]): number {
  return Math.max(0, ...lines.map(({ text }) => columnsOf(text) * LINE_CHARACTER));
}

/** As wide as so many Latin letters: pictograms and East Asian characters take two. */
function columnsOf(text: string): number {
  return Array.from(text, (character) => (character > "\u{2e7f}" ? 2 : 1)).reduce(
    (sum, width) => sum + width,
    0,
  );
}

function cut(text: string): string {
  const characters = Array.from(text);
  return characters.length <= MAX_CHARACTERS ? text : `${characters.slice(0, MAX_CHARACTERS - 1).join("")}…`;
}
