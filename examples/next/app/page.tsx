/** A server component: it runs the query over HTTP, so the page arrives with the list. */
import { SynclineHttpClient } from "syncline/client";
import { preloadQuery } from "syncline/react";
import { api } from "../functions/_generated.ts";
import { url } from "./client.ts";
import { Tasks } from "./tasks.tsx";

/** Renders at each request, not when the app is built. */
export const dynamic = "force-dynamic";

export default async function Page() {
  return <Tasks preloaded={await preloadQuery(new SynclineHttpClient(url), api.tasks.list)} />;
}
