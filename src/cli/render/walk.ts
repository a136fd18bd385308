// A walk through a machine in words, and one line of what somebody types in it.
import type { EventObject } from "xstate";
import { printable } from "../../base/safe-text.ts";
import type { OfferedEvent, Standing, Step } from "../../charts/walk.ts";

/** The meaning of a line that somebody has typed. */
export type Wish =
  | { readonly kind: "event"; readonly event: EventObject; readonly name: string }
  | { readonly kind: "back" | "restart" }
  | { readonly kind: "quit" }
  | { readonly kind: "help" }
  | { readonly kind: "nothing" }
  | { readonly kind: "unclear"; readonly problem: string };

export const WALK_HELP = `An event by its number or its name, with its fields as JSON behind it where guards look at them:
  2
  item.lost {"attempt": 1}
back: undo the last step; restart: begin anew; quit, or Ctrl-D: end.
`;

const COMMANDS = ["back", "restart", "quit", "help"] as const;

/** `offered` are the events that the numbers of the line are about. A word of a command is that command; an event of that name has a number. */
export function wishOf(line: string, offered: readonly OfferedEvent[]): Wish {
  const text = line.trim();
  if (text === "") return { kind: "nothing" };
  const command = COMMANDS.find((word) => word === text) ?? (text === "?" ? "help" : undefined);
  if (command !== undefined) return { kind: command };
  const brace = text.indexOf("{");
  const head = (brace === -1 ? text : text.slice(0, brace)).trim();
  const fields = brace === -1 ? {} : fieldsIn(text.slice(brace));
  if (fields === undefined)
    return { kind: "unclear", problem: "what stands behind the event is no JSON object" };
  const chosen = /^\d+$/.test(head)
    ? offered[Number(head) - 1]
    : offered.find(({ event, label }) => event === head || label === head);
  if (chosen === undefined && /^\d+$/.test(head))
    return { kind: "unclear", problem: `there is no event ${head}` };
  const type = chosen?.event ?? (head === "" ? fields["type"] : head);
  if (typeof type !== "string") return { kind: "unclear", problem: "the event has no name" };
  return { kind: "event", event: { ...fields, type }, name: chosen?.label ?? type };
}

function fieldsIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

/** Where it is, and what can be done there. */
export function standingText({ leaves, status, problem, offered }: Standing): string {
  const invoked = leaves.flatMap(({ invokes }) => invokes.map(({ source }) => source));
  const lines = [
    `state: ${leaves.map(({ path, key }) => path || key).join(", ")}`,
    ...(invoked.length === 0 ? [] : [`actors, not run: ${invoked.join(", ")}`]),
    ...(status === "active" ? [] : [`it is over: ${problem ?? status}`]),
    ...(status === "active" && offered.length === 0 ? ["nothing leads on from here"] : []),
    ...offered.map((event, at) => `${String(at + 1).padStart(3)}  ${offerText(event)}`),
  ];
  return `${lines.map(printable).join("\n")}\n`;
}

function offerText({ label, transitions }: OfferedEvent): string {
  const ways = transitions.map(({ guard, targets, source }) => {
    const target = targets.length === 0 ? "stays" : targets.map((id) => nameFrom(id, source)).join(" and ");
    return `${target}${guard === null ? "" : ` if ${guard}`}`;
  });
  return `${label}: ${ways.join(", else ")}`;
}

/** Without the machine's own id, which all of them begin with. */
function nameFrom(id: string, source: string): string {
  const [machine = ""] = source.split(".", 1);
  return id.startsWith(`${machine}.`) ? id.slice(machine.length + 1) : id;
}

export function stepText(name: string, step: Step): string {
  switch (step.kind) {
    case "taken":
      return `${printable(name)}${step.actions.length === 0 ? "" : `; actions, not run: ${printable(step.actions.join(", "))}`}\n`;
    case "refused":
      return `${printable(name)} is refused: ${printable(step.guards.join(", "))} said no\n`;
    case "ignored":
      return `${printable(name)} is ignored in this state\n`;
    case "failed":
      return `${printable(name)} fails: ${printable(step.problem)}\n`;
  }
}
