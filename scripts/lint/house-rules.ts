// The house's own lint rules, as a plugin for eslint.config.js.
import { fileName } from "./file-name.ts";
import { plainOpening } from "./plain-opening.ts";

export const houseRules = {
  meta: { name: "house" },
  rules: {
    "file-name": fileName,
    "plain-opening": plainOpening,
  },
};
