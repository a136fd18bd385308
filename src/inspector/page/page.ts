// The page of `rollout inspect`, put together: news come in by the feed, change what is known, and once a frame the view that is
// looked at shows it. The address after `#` says which one that is.
//
// The page's files: `feed` hears, `server-calls` asks; `dom`, `desk`, `banner`, `side-panel`, `explained-lines` and `deed-dialog` are what views share, and
// `browser` has time and chance. A folder for each view, and `known` for what is known.
import { Banner } from "./banner.ts";
import { browserClock } from "./browser.ts";
import { chartsView } from "./charts/charts-view.ts";
import { DeedDialog } from "./deed-dialog.ts";
import { partsOf } from "./desk.ts";
import type { Desk, View } from "./desk.ts";
import { make, setAttribute, setHidden, setText } from "./dom.ts";
import { Feed } from "./feed.ts";
import type { FeedState } from "./feed.ts";
import { itemsView } from "./items/items-view.ts";
import { Cluster } from "./known/cluster.ts";
import type { Topic } from "./known/cluster.ts";
import { overviewView } from "./overview/overview-view.ts";
import { programsView } from "./programs/programs-view.ts";
import { ServerCalls } from "./server-calls.ts";
import { workersView } from "./workers/workers-view.ts";

const ALL: ReadonlySet<Topic> = new Set([
  ...(["hello", "link", "status", "workers", "steps", "history", "items", "events", "programs"] as const),
]);

function start(): void {
  const calls = new ServerCalls(new URLSearchParams(location.search).get("token") ?? "");
  const cluster = new Cluster();
  const dialog = new DeedDialog(calls, cluster);
  let offsetMs = 0;
  const nowMs = (): number => browserClock.wallMs() + offsetMs;
  const desk: Desk = { cluster, calls, ask: (deed) => dialog.ask(deed), nowMs };
  const views = viewsOf(desk);
  const shell = new Shell(cluster, views);
  let feedState: FeedState = { kind: "open" };
  const banner = new Banner(() => feed.open());
  document.body.prepend(banner.element);
  document.body.append(dialog.element);

  const changed = new Set<Topic>();
  let isDue = false;
  const due = (): void => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      const topics = new Set(changed);
      changed.clear();
      shell.refresh(topics);
      banner.show(feedState, cluster.link, nowMs());
    });
  };
  const feed = new Feed(calls.headers, {
    heard: (news) => {
      for (const one of news) {
        if (one.kind === "hello") offsetMs = one.now_ms - browserClock.wallMs();
        if (one.kind === "hello" && one.version !== cluster.hello?.version) calls.forgetPictures();
        changed.add(cluster.take(one, browserClock.monotonicMs()));
      }
      due();
    },
    changed: (state) => {
      feedState = state;
      due();
    },
  });
  shell.open();
  addEventListener("hashchange", () => shell.open());
  // Its address is no view's.
  part("skip").addEventListener("click", (event) => {
    event.preventDefault();
    part("main").focus();
  });
  // The seconds of the banner pass also while nothing is heard.
  browserClock.every(1_000, due);
  feed.open();
}

function viewsOf(desk: Desk): ReadonlyMap<string, View> {
  return new Map([
    ["overview", overviewView(desk)],
    ["workers", workersView(desk)],
    ["items", itemsView(desk)],
    ["charts", chartsView(desk)],
    ["programs", programsView(desk)],
  ]);
}

/** The frame around the views: the name of the run, the way between them, and the voice for a screen reader. */
class Shell {
  readonly #cluster: Cluster;
  readonly #views: ReadonlyMap<string, View>;
  readonly #main = part("main");
  readonly #heading = make("h1", { tabindex: "-1" });
  readonly #room = make("div", { class: "room" });
  readonly #run = part("run");
  readonly #voice = part("voice");
  #shown: View | undefined;
  #said = "";

  constructor(cluster: Cluster, views: ReadonlyMap<string, View>) {
    this.#cluster = cluster;
    this.#views = views;
    this.#main.replaceChildren(this.#heading, this.#room);
  }

  /** The view of the address. */
  open(): void {
    const isOnlyPrograms = this.#cluster.hello?.run === null;
    const [name = isOnlyPrograms ? "programs" : "overview", ...path] = partsOf(location.hash);
    const view = this.#views.get(name) ?? this.#views.get("overview");
    if (view === undefined) return;
    const isFirst = this.#shown === undefined;
    const isOther = view !== this.#shown;
    if (isOther) {
      this.#shown?.hide?.();
      this.#shown = view;
      this.#room.replaceChildren(view.element);
      setText(this.#heading, view.title);
    }
    for (const link of document.querySelectorAll("[data-view]"))
      setAttribute(link, "aria-current", link.getAttribute("data-view") === name ? "page" : null);
    this.#titleOf(view);
    view.show(path);
    // A screen reader goes on at the new view, and a keyboard too.
    if (isOther && !isFirst && path.length === 0) this.#heading.focus();
  }

  refresh(topics: ReadonlySet<Topic>): void {
    const { hello } = this.#cluster;
    if (topics.has("hello")) {
      setText(this.#run, hello?.run === undefined || hello.run === null ? "" : hello.run.run_id);
      setHidden(part("run-part"), hello?.run === null || hello?.run === undefined);
      this.open();
    }
    if (topics.has("hello") || topics.has("programs")) this.#offer();
    this.#shown?.refresh(topics.has("hello") ? ALL : topics);
    if (topics.has("status") || topics.has("link")) this.#say();
  }

  /** Programs, where there may be some; the rest, where there is a run. */
  #offer(): void {
    const { hello, programs } = this.#cluster;
    const takesPrograms = hello?.listens_at !== null || programs.all.length > 0;
    const hasRun = hello?.run !== null;
    for (const link of document.querySelectorAll<HTMLElement>("[data-view]"))
      setHidden(link, link.dataset["view"] === "programs" ? !takesPrograms : !hasRun);
  }

  /** Only what a person has to know at once. */
  #say(): void {
    const { status, link } = this.#cluster;
    if (status === undefined) return;
    const trouble = status.trouble.length === 0 ? "" : ` Trouble: ${status.trouble.join(" ")}`;
    const words = `${link?.connected === false ? "No coordinator answers. " : ""}The run is ${status.state}.${trouble}`;
    if (this.#said === words) return;
    if (this.#said !== "") setText(this.#voice, words);
    this.#said = words;
    if (this.#shown !== undefined) this.#titleOf(this.#shown);
  }

  #titleOf(view: View): void {
    const { status } = this.#cluster;
    document.title = `${view.title}${status === undefined ? "" : ` · ${status.state}`} · rollout`;
  }
}

function part(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no ${id}`);
  return element;
}

start();
