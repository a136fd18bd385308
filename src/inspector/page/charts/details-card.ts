// The card beside a state or a transition that says all that is known of it. There is one for the whole page.
import { make, setHidden, setText } from "../dom.ts";

const GAP = 10;

const text = make("p");
// A screen reader has the same words as the name of the element itself.
const card = make("div", { class: "details-card", "aria-hidden": "true", hidden: true }, text);
let owner: Element | undefined;

/** Null takes it away, if it is this element's. */
export function showDetails(details: string | null, element: Element): void {
  if (details === null) {
    if (owner === undefined || owner === element || element.contains(owner)) setHidden(card, true);
    return;
  }
  if (!card.isConnected) document.body.append(card);
  owner = element;
  setText(text, details);
  setHidden(card, false);
  const target = element.getBoundingClientRect();
  const { width, height } = card.getBoundingClientRect();
  const left = Math.min(Math.max(GAP, target.left), innerWidth - width - GAP);
  const below = target.bottom + GAP;
  const top = below + height < innerHeight ? below : Math.max(GAP, target.top - height - GAP);
  card.style.left = `${left}px`;
  card.style.top = `${top}px`;
}
