/** Clients that watch a query in somebody else's name: a connection of its own each, which ends with the watching. */
import { SynclineClient } from "syncline/client";
import { adminSession } from "../../server/admin_session.ts";
import type { RunAs } from "../../server/api.ts";

export interface Watcher {
  readonly client: SynclineClient;
  readonly end: () => Promise<void>;
}

/**
 * In a user's name there is a session for it meanwhile, which the user's sheet shows as an administrator's. `onEnded`: it
 * is over, and nothing more comes.
 */
export async function watcherAs(
  as: Exclude<RunAs, { readonly adminId: string }>,
  onEnded: () => void,
): Promise<Watcher> {
  const client = new SynclineClient(location.origin);
  if (as === null) {
    return {
      client,
      end() {
        client.close();
        return Promise.resolve();
      },
    };
  }
  const response = await adminSession.fetch("/api/admin/impersonate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ userId: as.userId }),
  });
  const { accessToken } = await response.json() as { readonly accessToken: string };
  // Without its token the client would go on as nobody.
  client.setAuth(() => Promise.resolve(accessToken), (isAuthenticated) => {
    if (isAuthenticated) return;
    onEnded();
    client.close();
  });
  return {
    client,
    async end() {
      client.close();
      await fetch("/api/auth/signout", {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${accessToken}` },
        body: "{}",
      });
    },
  };
}
