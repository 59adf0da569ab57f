import { createApi } from "syncline/client";

export const { api } = createApi<{ tasks: typeof import("../functions/tasks.ts") }>();
