/** The scheduler's functions in the isolates, as main names them, and what it needs of the rest of the server. */
import { createApi } from "../protocol/api_reference.ts";
import type { FunctionCall } from "../functions/host_port.ts";
import type { Outcome } from "../functions/outcome.ts";
import type { CallPort } from "../functions/system_calls.ts";
import type { cronFunctions, jobFunctions } from "./isolate_functions/mod.ts";

/** What the scheduler calls through. */
export interface SchedulerPort extends CallPort {
  /** Runs an action, of the app, of the service, or of main itself. */
  act(call: FunctionCall): Promise<Outcome>;
}

const references = createApi<
  { "_system/scheduler": typeof jobFunctions; "_system/crons": typeof cronFunctions }
>().internal._system;

/** The functions of jobs and crons. */
export const system = { jobs: references.scheduler, crons: references.crons };
