/** Clients that watch a query under another identity, each on its own connection. */
import { SynclineClient } from "syncline/client";
import { adminSession } from "../../server/admin_session.ts";
import type { RunAs } from "../../server/api.ts";

export interface IdentityClient {
  readonly client: SynclineClient;
  readonly end: () => Promise<void>;
}

/**
 * Opens a client for the identity. For a user it creates a session, which the user's details show as an impersonation.
 *
 * @param onEnded Called when that session has ended.
 */
export async function openClientAs(
  as: Exclude<RunAs, { readonly adminId: string }>,
  onEnded: () => void,
): Promise<IdentityClient> {
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
  // Without its token the client would continue signed out.
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
