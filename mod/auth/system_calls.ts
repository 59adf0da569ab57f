/** References to the system functions of accounts, and functions that call them. */
import { createApi } from "../protocol/api_reference.ts";
import type { systemFunctions } from "./isolate_functions/mod.ts";

export { type CallOptions, type CallPort, SystemCalls } from "../functions/system_calls.ts";

export const system = createApi<{ "_system/auth": typeof systemFunctions }>().internal._system.auth;
