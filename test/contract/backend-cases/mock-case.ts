import { MockBackend } from "../../../src/worker/backends/mock/mock-backend.ts";
import type { BackendCase } from "../../support/backend-case.ts";

export const backendCase: BackendCase = {
  name: "mock",
  can: new Set(["echo"]),
  open: ({ clock, random }) => new MockBackend({ clock, random }),
  outputOf: (_, payload) => payload,
  executesIn: "this process",
};
