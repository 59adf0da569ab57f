/** References to the server's functions, with their types. */
import { createApi, type ResultOf } from "syncline/client";

export const { api } = createApi<{
  channels: typeof import("../functions/channels.ts");
  messages: typeof import("../functions/messages.ts");
  people: typeof import("../functions/people.ts");
  typing: typeof import("../functions/typing.ts");
}>();

/** A message, or one that is still on its way. */
export type Message = ResultOf<typeof api.messages.page>["page"][number] & { readonly pending?: boolean };

/** A signed-in person. */
export type Person = NonNullable<ResultOf<typeof api.people.me>>;
