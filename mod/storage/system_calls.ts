/** References to the system functions of files. */
import { createApi } from "../functions/api/reference.ts";
import type { systemFunctions } from "./functions.ts";

export const system = createApi<{ "_system/storage": typeof systemFunctions }>().internal._system.storage;
