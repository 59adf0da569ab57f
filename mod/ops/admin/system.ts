/** References to the administrators' system functions. */
import { createApi } from "../../protocol/api_reference.ts";
import type { adminSystemFunctions } from "../isolate_functions/mod.ts";

export const system = createApi<{ "_system/admin": typeof adminSystemFunctions }>().internal._system.admin;
