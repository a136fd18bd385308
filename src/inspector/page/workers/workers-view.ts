// All workers, and one of them at the side.
import type { Desk, View } from "../desk.ts";
import { make } from "../dom.ts";
import type { Topic } from "../known/cluster.ts";
import { WorkerSide } from "./worker-side.ts";
import { WorkerTable } from "./worker-table.ts";

export function workersView(desk: Desk): View {
  const table = new WorkerTable(desk.cluster);
  const side = new WorkerSide(desk);
  const main = make("section", { class: "card", "aria-label": "Workers" }, table.element);
  const element = make("div", { class: "with-side" }, main, side.panel.element);
  return {
    element,
    title: "Workers",
    show: ([worker]) => {
      element.classList.toggle("open", worker !== undefined);
      table.show(worker);
      if (worker === undefined) side.panel.hide();
      else side.show(worker);
    },
    refresh: (topics) => {
      // Times that pass are shown while the coordinator is heard, and only then.
      if (["workers", "status", "history", "hello"].some((topic) => topics.has(topic as Topic)))
        table.refresh();
      if (["workers", "steps", "hello"].some((topic) => topics.has(topic as Topic))) side.refresh();
    },
  };
}
