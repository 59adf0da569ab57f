/** References to the functions of these tests, as a page has them. */
import { createApi } from "syncline/client";

export const { api } = createApi<{ rows: typeof import("../functions/rows.ts") }>();
