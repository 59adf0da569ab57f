/** Runs the queries of the page on the server, as the user whose access token is in the cookie. */
import type { RequestEvent } from "@sveltejs/kit";
import { FunctionError, ownAccount, SynclineHttpClient } from "syncline/client";
import { api } from "../../functions/_generated.ts";
import { url } from "../lib/client.ts";

export async function load({ cookies }: RequestEvent) {
  const token = cookies.get("syncline-token") ?? null;
  try {
    return await results(token);
  } catch (error) {
    // The session of the token has ended: the page begins signed out.
    if (!(error instanceof FunctionError) || error.code !== "invalid_token") throw error;
    return await results(null);
  }
}

async function results(token: string | null) {
  const server = new SynclineHttpClient(url, { token: () => token });
  const [tasks, account] = await Promise.all([server.query(api.tasks.list), server.query(ownAccount)]);
  return { tasks, account };
}
