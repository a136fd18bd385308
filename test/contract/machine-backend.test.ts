import { fileURLToPath } from "node:url";
import { backendCase } from "../support/backend-cases/machine-case.ts";
import { backendContract } from "./backend.ts";

backendContract(
  backendCase,
  fileURLToPath(new URL("../support/backend-cases/machine-case.ts", import.meta.url)),
);
