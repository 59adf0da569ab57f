/** References to the app's functions, typed by the modules themselves: `api.items.page`, `internal.cleanup.removeDone`. */
import { createApi } from "syncline/server";

export const { api, internal } = createApi<{
  cleanup: typeof import("./cleanup.ts");
  items: typeof import("./items.ts");
  lists: typeof import("./lists.ts");
}>();
