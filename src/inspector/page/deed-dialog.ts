// Deeds of an operator: what each of them will do is said first, and done when he confirms it. The answer stays until he closes it.
import type { Deed } from "../page-messages.ts";
import { button, make, setDisabled, setText } from "./dom.ts";
import type { Cluster } from "./known/cluster.ts";
import { countOf, shortName } from "./known/phrases.ts";
import type { ServerCalls } from "./server-calls.ts";

interface Question {
  readonly title: string;
  readonly consequence: string;
  readonly confirm: string;
  readonly isGrave?: true;
}

export class DeedDialog {
  readonly element: HTMLDialogElement;
  readonly #calls: ServerCalls;
  readonly #cluster: Cluster;
  readonly #title = make("h2", { id: "deed-title" });
  readonly #words = make("p", { id: "deed-words" });
  readonly #answer = make("div", { class: "answer", role: "status" });
  readonly #confirm = button("", () => void this.#perform(), { class: "primary" });
  readonly #close = button("Not now", () => this.element.close());
  #deed: Deed | undefined;

  constructor(calls: ServerCalls, cluster: Cluster) {
    this.#calls = calls;
    this.#cluster = cluster;
    this.element = make(
      "dialog",
      { "aria-labelledby": "deed-title", "aria-describedby": "deed-words" },
      ...[this.#title, this.#words, this.#answer],
      make("div", { class: "buttons" }, this.#close, this.#confirm),
    );
  }

  ask(deed: Deed): void {
    const { title, consequence, confirm, isGrave } = this.#questionOf(deed);
    this.#deed = deed;
    setText(this.#title, title);
    setText(this.#words, consequence);
    setText(this.#confirm, confirm);
    setText(this.#close, "Not now");
    this.#confirm.classList.toggle("grave", isGrave === true);
    this.#confirm.hidden = false;
    setDisabled(this.#confirm, false);
    this.#answer.replaceChildren();
    this.element.showModal();
    // A key that is pressed once too often does nothing.
    this.#close.focus();
  }

  async #perform(): Promise<void> {
    const deed = this.#deed;
    if (deed === undefined) return;
    setDisabled(this.#confirm, true);
    this.#answer.replaceChildren(make("p", {}, "Asking the coordinator…"));
    const done = await this.#calls.perform(deed);
    // He may have closed it and asked for something else.
    if (this.#deed !== deed) return;
    setText(this.#close, "Close");
    if (done.ok) {
      this.#confirm.hidden = true;
      this.#answer.replaceChildren(make("p", { class: "done" }, done.words));
    } else {
      setDisabled(this.#confirm, false);
      setText(this.#confirm, "Try again");
      const { message, hint } = done.error;
      this.#answer.replaceChildren(make("p", { class: "wrong" }, message), make("p", {}, hint));
    }
    this.#close.focus();
  }

  #questionOf(deed: Deed): Question {
    const { status, workers } = this.#cluster;
    switch (deed.deed) {
      case "pause":
        return {
          title: "Pause the run?",
          consequence:
            `Nothing more is given out to workers. ${countOf(status?.running ?? 0, "item")} that workers have already ` +
            "go on to their end. You can resume at any moment.",
          confirm: "Pause the run",
        };
      case "resume":
        return {
          title: "Resume the run?",
          consequence: "Items are given out to workers again, and the run's limits are counted from here.",
          confirm: "Resume the run",
        };
      case "cancel":
        return {
          title: "Cancel the run for good?",
          consequence:
            `What executes is killed (${countOf(status?.executing ?? 0, "execution")}), and what waits never starts ` +
            `(${countOf((status?.pending ?? 0) + (status?.delayed ?? 0), "item")}). Results that are there stay. ` +
            "A cancelled run cannot be taken up again.",
          confirm: "Cancel the run",
          isGrave: true,
        };
      case "drain": {
        const row = workers.get(deed.worker_id);
        return {
          title: `Drain worker ${deed.worker_id}?`,
          consequence:
            `It takes nothing new, hands back what it has not started, finishes what it executes and leaves. ` +
            `It has ${countOf(row?.held ?? 0, "item")} now; none is lost, and none is charged. A drain cannot be taken back: ` +
            "start the worker again when you want it back.",
          confirm: "Drain the worker",
        };
      }
      case "retry":
        return {
          title: deed.item === undefined ? "Retry all failed items?" : `Retry item ${shortName(deed.item)}?`,
          consequence:
            deed.item === undefined
              ? `${countOf(status?.failed ?? 0, "failed item")} become pending again, with all their attempts. A run that is complete is reopened.`
              : "It becomes pending again, with all its attempts. A run that is complete is reopened.",
          confirm: deed.item === undefined ? "Retry failed items" : "Retry the item",
        };
    }
  }
}
