import { backendCase } from "./backend-cases/command-case.ts";
import { backendContract } from "./backend.ts";

backendContract(backendCase);
