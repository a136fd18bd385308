// Settings of the run itself: when it stops, and how large an item may be.
import { coordinator, members } from "./setting.ts";
import type { Setting } from "./setting.ts";

export const RUN_SETTINGS = {
  "run.max_attempts": {
    kind: "integer",
    default: 3,
    min: 1,
    max: 1_000,
    flag: "max-attempts",
    roles: coordinator,
    doc: "How many attempts of an item may fail by its own doing (error, timeout, crash) before the item fails.",
  },
  "run.max_lost": {
    kind: "integer",
    default: 5,
    min: 1,
    max: 1_000,
    flag: "max-lost",
    roles: coordinator,
    doc: "How many workers may fall silent while they run an item before the item fails as poison. After two of them it runs with nothing beside it; with 1 or 2 here it fails before that, perhaps for what ran beside it.",
  },
  "run.item_timeout": {
    kind: "duration",
    min: "10ms",
    max: "30d",
    flag: "item-timeout",
    roles: coordinator,
    doc: "How long one attempt of an item may take; without it, as long as its plugin lets it.",
  },
  "run.max_fails": {
    kind: "failures",
    flag: "max-fails",
    roles: coordinator,
    doc: "How many items may fail before the run is paused, counted from its start or from when it was last resumed; a percentage is of the items that are final, and is judged when 20 of them are. What runs by then is finished and recorded, so a few more may fail. Whatever it is, a run is also paused when the first 50 items to end have all failed, once; with `none` it is not paused for any failures.",
  },
  "run.time_limit": {
    kind: "duration",
    min: "1s",
    max: "365d",
    flag: "time-limit",
    roles: coordinator,
    doc: "How long the run may go on before it is paused, counted from its first submission or from when it was last resumed.",
  },

  "limits.payload": {
    kind: "size",
    default: "1MiB",
    min: "1KiB",
    max: "16MiB",
    flag: "payload-limit",
    roles: coordinator,
    doc: "The largest payload of an item. The coordinator refuses a larger one, and so does `rollout submit` before it sends it; set it for both.",
  },
  "limits.output": {
    kind: "size",
    default: "1MiB",
    min: "1KiB",
    max: "16MiB",
    flag: "output-limit",
    roles: members,
    doc: "The largest output of an item. An item with a larger one fails as too_large; of worker and coordinator the stricter wins.",
  },
} as const satisfies Record<string, Setting>;
