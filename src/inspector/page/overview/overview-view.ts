// The cluster at a glance.
import type { Desk, View } from "../desk.ts";
import { make, setHidden } from "../dom.ts";
import type { Topic } from "../known/cluster.ts";
import { ratesOf } from "../known/scale.ts";
import { Coordinators } from "./coordinators.ts";
import { Course } from "./course.ts";
import { Failures, Troubles } from "./failures.ts";
import { ReleaseCard } from "./release-card.ts";
import { Summary } from "./summary.ts";
import { Timeline } from "./timeline.ts";

export function overviewView(desk: Desk): View {
  const { cluster } = desk;
  const summary = new Summary(desk);
  const troubles = new Troubles();
  const course = new Course();
  const release = new ReleaseCard();
  const failures = new Failures();
  const coordinators = new Coordinators();
  const timeline = new Timeline();
  const waiting = make("p", { class: "empty large" }, "Waiting for the first word from the coordinator.");
  const all = make(
    "div",
    { class: "overview" },
    ...[troubles.element, summary.element, course.element, release.element],
    make("div", { class: "two" }, failures.element, coordinators.element),
    timeline.element,
  );
  const rate = (): number => {
    const points = cluster.history.points.slice(-15);
    return ratesOf(points, points.length).at(-1)?.perSecond ?? cluster.status?.finished_per_second ?? 0;
  };
  const refresh = (topics: ReadonlySet<Topic>): void => {
    const { status } = cluster;
    setHidden(waiting, status !== undefined);
    setHidden(all, status === undefined);
    if (status === undefined) return;
    if (topics.has("status") || topics.has("hello")) {
      summary.show(status, rate());
      troubles.show(status.trouble);
      failures.show(status);
      coordinators.show(status.coordinators);
    }
    if (topics.has("history")) course.show(cluster.history.points);
    if (topics.has("release") || topics.has("hello")) release.show(cluster.release);
    if (topics.has("events") || topics.has("hello")) timeline.show(cluster.events);
  };
  return {
    element: make("div", {}, waiting, all),
    title: "Overview",
    show: () => refresh(new Set(["status", "history", "release", "events"])),
    refresh,
  };
}
