/** A server component: it runs the queries over HTTP as the user whose access token is in the cookie. */
import { cookies } from "next/headers";
import { FunctionError, ownAccount, SynclineHttpClient } from "syncline/client";
import { preloadQuery } from "syncline/react";
import { api } from "../functions/_generated.ts";
import { url } from "./client.ts";
import { Tasks } from "./tasks.tsx";

/** Reading a cookie makes Next.js render this page at each request. */
export default async function Page() {
  const token = (await cookies()).get("syncline-token")?.value ?? null;
  const results = await preload(token).catch((error: unknown) => {
    // The session of the token has ended: the page begins signed out.
    if (!(error instanceof FunctionError) || error.code !== "invalid_token") throw error;
    return preload(null);
  });
  return <Tasks {...results} />;
}

async function preload(token: string | null) {
  const server = new SynclineHttpClient(url, { token: () => token });
  const [tasks, account] = await Promise.all([
    preloadQuery(server, api.tasks.list),
    preloadQuery(server, ownAccount),
  ]);
  return { tasks, account };
}
