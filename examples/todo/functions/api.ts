/** References to the app's functions, typed by the modules themselves: `api.items.page`, `internal.cleanup.removeDone`. */
import { createApi } from "syncline/server";

export const { api, internal } = createApi<{
  attachments: typeof import("./attachments.ts");
  cleanup: typeof import("./cleanup.ts");
  items: typeof import("./items.ts");
  lists: typeof import("./lists.ts");
  sharing: typeof import("./sharing.ts");
}>();
