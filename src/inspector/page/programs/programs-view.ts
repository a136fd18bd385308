// Programs of other people that speak to the page: their actors as a tree, the chart of one with its state lit, and its log.
//
// Keeps true: their words are text and nothing else, and a program that never stops talking stays usable.
import type { ActorRow } from "../../page-messages.ts";
import { nobody, Player } from "../charts/player.ts";
import { readable, timeText } from "../browser.ts";
import { addressOf } from "../desk.ts";
import type { Desk, View } from "../desk.ts";
import { KeyedList, make, setAttribute, setHidden, setText } from "../dom.ts";
import { branchesOf } from "../known/actor-tree.ts";
import type { Branch } from "../known/actor-tree.ts";
import type { Cluster } from "../known/cluster.ts";
import { countOf } from "../known/phrases.ts";
import { movesOf } from "../known/programs.ts";
import type { KnownProgram } from "../known/programs.ts";

/** More would be a page that nobody reads; the others are found by their names. */
const SHOWN = 300;

export function programsView(desk: Desk): View {
  const { cluster, calls } = desk;
  const player = new Player("Actor");
  const list = new ProgramList();
  const tree = new ActorTree();
  const note = make("p", { class: "empty" });
  const how = make("div", { class: "card" });
  const room = make(
    "div",
    { class: "card chart-room" },
    tree.element,
    make("div", { class: "player-room" }, note, player.element),
  );
  const element = make("div", { class: "charts" }, list.element, how, room);
  let programId: string | undefined;
  let sessionId: string | undefined;
  let followed = "";

  const follow = (known: KnownProgram, actor: ActorRow | undefined): void => {
    const name = `${known.program.program_id}/${actor?.session_id ?? ""}/${actor?.definition ?? ""}`;
    if (followed === name) return player.refresh();
    followed = name;
    const definition = actor?.definition ?? null;
    setHidden(note, definition !== null);
    setHidden(player.element, actor === undefined);
    setText(
      note,
      actor === undefined
        ? "No actor yet."
        : `${actor.name} has no chart: it is no machine, or one that cannot be drawn. Its log is here all the same.`,
    );
    if (actor === undefined) return;
    const { session_id } = actor;
    const id = known.program.program_id;
    const source = {
      moves: () => movesOf(cluster.programs.find(id)?.log ?? [], session_id),
      state: () => cluster.programs.find(id)?.actors.get(session_id)?.value ?? null,
    };
    const picture = definition === null ? NO_PICTURE : calls.definition(id, definition);
    void player.show(picture, definition === null ? source : source);
  };
  const refresh = (): void => {
    const { all } = cluster.programs;
    const known = cluster.programs.find(programId ?? "") ?? all[0];
    setHidden(room, known === undefined);
    setHidden(how, known !== undefined);
    if (known === undefined) how.replaceChildren(...howToConnect(cluster));
    list.show(all, known?.program.program_id);
    if (known === undefined) return void player.show(NO_PICTURE, nobody);
    const actor = known.actors.get(sessionId ?? "") ?? known.actors.values().next().value;
    tree.show(known, actor?.session_id);
    follow(known, actor);
  };
  return {
    element,
    title: "Programs",
    show: (path) => {
      [programId, sessionId] = path;
      refresh();
    },
    refresh: (topics) => {
      if (topics.has("programs") || topics.has("hello")) refresh();
    },
  };
}

const NO_PICTURE = Promise.resolve({
  ...{ name: "", version: null, description: null, svg: null, states: [], transitions: [] },
});

function howToConnect({ hello }: Cluster): HTMLElement[] {
  const address = hello?.listens_at ?? null;
  if (address === null)
    return [
      make(
        "p",
        {},
        "This page takes no programs. Start it with `rollout inspect --listen` to see the machines of a program of yours.",
      ),
    ];
  return [
    make("p", {}, "No program has connected yet. Give yours this address, as @statelyai/inspect says:"),
    make(
      "pre",
      { class: "explain" },
      `import { createWebSocketInspector } from "@statelyai/inspect";\n\nconst inspector = createWebSocketInspector({ url: ${JSON.stringify(address)} });\ncreateActor(machine, { inspect: inspector.inspect }).start();`,
    ),
  ];
}

class ProgramList {
  readonly element = make("nav", { class: "tabs programs", "aria-label": "Programs" });
  readonly #links: KeyedList<KnownProgram, HTMLAnchorElement>;
  #chosen: string | undefined;

  constructor() {
    this.#links = new KeyedList(
      this.element,
      ({ program }) => make("a", { href: addressOf("programs", program.program_id) }),
      (link, { program }) => {
        setText(
          link,
          program.connected ? program.name : `${program.name} (gone since ${timeText(program.since_ms)})`,
        );
        setAttribute(link, "aria-current", program.program_id === this.#chosen ? "page" : null);
      },
    );
  }

  show(programs: readonly KnownProgram[], chosen: string | undefined): void {
    this.#chosen = chosen;
    setHidden(this.element, programs.length === 0);
    this.#links.show(programs.map((known) => [known.program.program_id, known]));
  }
}

class ActorTree {
  readonly element: HTMLElement;
  readonly #search = make("input", { type: "search", id: "tree-text", placeholder: "part of a name" });
  readonly #complaints = make("ul", { class: "complaints" });
  readonly #complaintList: KeyedList<string, HTMLLIElement>;
  readonly #note = make("p", { class: "quiet" });
  readonly #list: KeyedList<Branch, HTMLLIElement>;
  #program = "";
  #chosen: string | undefined;
  #known: KnownProgram | undefined;
  readonly #draw = readable(() => this.#drawNow());

  constructor() {
    const list = make("ul", { class: "actors tree" });
    this.#list = new KeyedList(
      list,
      () =>
        make("li", {}, make("a", {}, make("span", { class: "name" }), make("span", { class: "in-state" }))),
      (line, branch) => this.#fill(line, branch),
    );
    this.#complaintList = new KeyedList(
      this.#complaints,
      (words) => make("li", {}, words),
      () => undefined,
    );
    this.#search.addEventListener("input", () => this.#drawNow());
    const filter = make(
      "div",
      { class: "filters" },
      make("label", { for: "tree-text" }, "Find"),
      this.#search,
    );
    this.element = make(
      "section",
      { class: "picker", "aria-label": "Actors" },
      make("h2", { class: "minor" }, "Actors"),
      this.#complaints,
      filter,
      list,
      this.#note,
    );
  }

  show(known: KnownProgram, chosen: string | undefined): void {
    const isOther = this.#chosen !== chosen;
    [this.#known, this.#chosen] = [known, chosen];
    this.#program = known.program.program_id;
    if (isOther) this.#drawNow();
    else this.#draw();
  }

  #drawNow(): void {
    if (this.#known === undefined) return;
    const { program, actors, dropped } = this.#known;
    const wanted = this.#search.value.trim().toLowerCase();
    const branches = branchesOf(actors).filter(({ actor }) => actor.name.toLowerCase().includes(wanted));
    this.#list.show(
      branches.slice(0, SHOWN).map((branch) => [`${this.#program} ${branch.actor.session_id}`, branch]),
    );
    const more = branches.length - SHOWN;
    const notes = [
      ...(more > 0 ? [`${countOf(more, "more", "more")}: find them by a part of their names.`] : []),
      ...(dropped > 0 ? [`${countOf(dropped, "line")} of its log were too many and are left out.`] : []),
    ];
    setText(this.#note, notes.join(" "));
    setHidden(this.#complaints, program.complaints.length === 0);
    this.#complaintList.show(program.complaints.map((words, at) => [`${at} ${words}`, words]));
  }

  #fill(line: HTMLLIElement, { actor, depth }: Branch): void {
    const link = line.firstElementChild;
    if (link === null) return;
    setAttribute(link, "href", addressOf("programs", this.#program, actor.session_id));
    setAttribute(link, "aria-current", actor.session_id === this.#chosen ? "true" : null);
    const indent = `${Math.min(depth, 12) * 0.9}rem`;
    if (line.style.marginInlineStart !== indent) line.style.marginInlineStart = indent;
    const [name, inState] = link.children;
    if (name !== undefined) setText(name, actor.name);
    if (inState !== undefined)
      setText(
        inState,
        [actor.value, actor.status === "active" ? "" : actor.status]
          .filter((words) => words !== "")
          .join(", "),
      );
  }
}
