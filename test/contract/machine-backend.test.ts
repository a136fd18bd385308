import { backendCase } from "./backend-cases/machine-case.ts";
import { backendContract } from "./backend.ts";

backendContract(backendCase);
