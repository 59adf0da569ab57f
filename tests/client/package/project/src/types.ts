/** Type tests: every marked line is a compile error, and no other line is. */
import { createApi, SynclineClient, SynclineHttpClient } from "syncline/client";
import { useQuery } from "syncline/react";
import { api } from "../functions/api.ts";

export async function check(client: SynclineClient, http: SynclineHttpClient): Promise<void> {
  const notes = await client.query(api.notes.list, {});
  const text: string | undefined = notes[0]?.text;
  const stars: number | undefined = notes[0]?.stars;
  // @ts-expect-error: rows have no such field
  notes[0]?.title;
  // @ts-expect-error: a mutation is no query
  await client.query(api.notes.add, { text: "" });
  // @ts-expect-error: an argument is missing
  await http.mutation(api.notes.add, {});
  // @ts-expect-error: a text is no number
  await http.mutation(api.notes.add, { text: "", stars: "5" });
  // @ts-expect-error: there is no such function
  api.notes.remove;
  const same = createApi<{ notes: typeof import("../functions/notes.ts") }>().api;
  client.subscribe(same.notes.list, {}, (rows) => rows.map((row) => row.text.length + (stars ?? 0)));
  void text;
}

export function useCheck(): number {
  // @ts-expect-error: the result may be loading
  return useQuery(api.notes.list, {}).length;
}
