import { backendCase } from "./backend-cases/mock-case.ts";
import { backendContract } from "./backend.ts";

backendContract(backendCase);
