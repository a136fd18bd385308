// A picture of a few lines over a logarithmic axis, as SVG that is read on a light page and on a dark one. The same figures make the same
// bytes.

interface Line {
  readonly name: string;
  /** In ascending order of x, which is above 0. */
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Plot {
  readonly title: string;
  readonly xName: string;
  readonly yName: string;
  readonly lines: readonly Line[];
}

const [WIDTH, HEIGHT] = [720, 360];
const AREA = { left: 56, right: WIDTH - 120, top: 40, bottom: HEIGHT - 48 };
const COLOURS = ["#3b82f6", "#d97706", "#059669", "#c026d3"] as const;
/** On a white page and on a black one. */
const INK = "#737880";

export function plot({ title, xName, yName, lines }: Plot): string {
  const points = lines.flatMap((line) => line.points);
  const [least, most] = [Math.min(...points.map(({ x }) => x)), Math.max(...points.map(({ x }) => x))];
  const ticks = niceTicks(Math.max(...points.map(({ y }) => y)));
  const highest = ticks.at(-1) ?? 1;
  const span = Math.log10(most / least) || 1;
  const atX = (x: number): string =>
    short(AREA.left + (Math.log10(x / least) / span) * (AREA.right - AREA.left));
  const atY = (y: number): string => short(AREA.bottom - (y / highest) * (AREA.bottom - AREA.top));
  const marks = [...new Set(lines[0]?.points.map(({ x }) => x))];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}"`,
    `  font-family="sans-serif" font-size="12" fill="${INK}">`,
    `  <text x="${AREA.left}" y="22" font-size="14">${title}</text>`,
    ...ticks.flatMap((y) => [
      `  <path d="M${AREA.left} ${atY(y)}H${AREA.right}" stroke="${INK}" stroke-opacity="0.3"/>`,
      `  <text x="${AREA.left - 8}" y="${atY(y)}" dy="4" text-anchor="end">${y}</text>`,
    ]),
    ...marks.map(
      (x) =>
        `  <text x="${atX(x)}" y="${AREA.bottom + 18}" text-anchor="middle">${x.toLocaleString("en")}</text>`,
    ),
    `  <text x="${AREA.right}" y="${HEIGHT - 10}" text-anchor="end">${xName}</text>`,
    `  <text x="${AREA.left - 40}" y="${AREA.top - 6}" font-size="11">${yName}</text>`,
    ...lines.flatMap(({ name, points: its }, at) => {
      const colour = COLOURS[at % COLOURS.length] ?? INK;
      const last = its.at(-1);
      const path = its.map(({ x, y }, place) => `${place === 0 ? "M" : "L"}${atX(x)} ${atY(y)}`).join("");
      return [
        `  <path d="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
        ...its.map(({ x, y }) => `  <circle cx="${atX(x)}" cy="${atY(y)}" r="3" fill="${colour}"/>`),
        ...(last === undefined
          ? []
          : [`  <text x="${AREA.right + 10}" y="${atY(last.y)}" dy="4" fill="${colour}">${name}</text>`]),
      ];
    }),
    "</svg>\n",
  ].join("\n");
}

/** From 0, up to the first that is not below `most`: steps of 1, 2 or 5 times a power of ten. */
function niceTicks(most: number): number[] {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1e-9)));
  const step = [0.2, 0.5, 1, 2].map((part) => part * power).find((some) => most / some <= 6) ?? power;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, at) => Number((at * step).toPrecision(6)));
}

function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}
