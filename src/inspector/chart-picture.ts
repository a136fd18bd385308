// A chart as the page shows it: its picture, and what can be looked up in it. Made of a model, so that a program's chart is shown as one
// of the product's.
import type { ChartModel } from "../charts/model.ts";
import { chartSvg, ChartTooLarge } from "../charts/svg.ts";
import type { ChartPicture } from "./page-messages.ts";

export async function chartPicture(name: string, model: ChartModel): Promise<ChartPicture> {
  return { ...chartOutline(name, model), svg: await drawn(model) };
}

/** The same, not drawn. */
export function chartOutline(
  name: string,
  { version, description, states, transitions }: ChartModel,
): ChartPicture {
  return {
    ...{ name, version, description, svg: null },
    states: states.map(({ id, path, kind, initial, parent }) => ({ id, path, kind, initial, parent })),
    transitions: transitions.map(({ id, source, event, guard, targets }) => ({
      ...{ id, source, event, guard, targets },
    })),
  };
}

async function drawn(model: ChartModel): Promise<string | null> {
  return chartSvg(model, { isAlone: false }).catch((error: unknown) => {
    if (error instanceof ChartTooLarge) return null;
    throw error;
  });
}
