/** References to the app's functions, for code on the server. */
import { createApi } from "syncline/server";

export const { internal } = createApi<{ typing: typeof import("./typing.ts") }>();
