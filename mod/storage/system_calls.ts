/** References to the system functions of file storage. */
import { createApi } from "../protocol/api_reference.ts";
import type { systemFunctions } from "./isolate_functions/mod.ts";

export const system = createApi<{ "_system/storage": typeof systemFunctions }>().internal._system.storage;
