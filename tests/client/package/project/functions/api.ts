import { createApi } from "syncline/server";

export const { api } = createApi<{ notes: typeof import("./notes.ts") }>();
