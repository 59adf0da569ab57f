/** Opens the app as a user in a new window, below a banner that names the session. */
import { beginFlow } from "../../../../mod/client/accounts/flows.ts";
import { adminSession } from "../../server/admin_session.ts";

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly expiresIn: number;
  readonly userId: string;
}

/** `name` is shown in the banner. The tokens are passed in the fragment, which is not sent to servers. */
export async function signInAs(userId: string, name: string): Promise<void> {
  const response = await adminSession.fetch("/api/admin/impersonate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ userId }),
  });
  const tokens = await response.json() as Tokens;
  const fragment = new URLSearchParams({
    as: name,
    svc_access_token: tokens.accessToken,
    svc_refresh_token: tokens.refreshToken,
    svc_expires_in: String(tokens.expiresIn),
    svc_user_id: tokens.userId,
    // Proves to the new window that this dashboard opened it.
    svc_state: beginFlow(Date.now()) ?? "",
  });
  open(`./as.html#${fragment}`, "_blank", "noopener");
}
