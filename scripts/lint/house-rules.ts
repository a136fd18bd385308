// The house's own lint rules, as a plugin for eslint.config.js.
import { ambientWorld } from "./ambient-world.ts";
import { errorText } from "./error-text.ts";
import { fileName } from "./file-name.ts";
import { plainOpening } from "./plain-opening.ts";

export const houseRules = {
  meta: { name: "house" },
  rules: {
    "ambient-world": ambientWorld,
    "error-text": errorText,
    "file-name": fileName,
    "plain-opening": plainOpening,
  },
};
