/** References to the system functions of deploys. */
import { createApi } from "../../protocol/api_reference.ts";
import type { deploySystemFunctions } from "./isolate_functions/mod.ts";

export const system = createApi<{ "_system/deploy": typeof deploySystemFunctions }>().internal._system.deploy;
