/** References to the server's functions, with their types. */
import { createApi, type ResultOf } from "syncline/client";
import type { Modules } from "../functions/_generated.ts";

export const { api } = createApi<Modules>();

/** A message, or one that is still on its way. */
export type Message = ResultOf<typeof api.messages.page>["page"][number] & { readonly pending?: boolean };

/** A signed-in person. */
export type Person = NonNullable<ResultOf<typeof api.people.me>>;
