/** Opens the app in another window as a user sees it. */
import { adminSession } from "../../server/admin_session.ts";

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly expiresIn: number;
  readonly userId: string;
}

/** The app gets the tokens as it gets them from any sign-in that left the page: in the fragment. */
export async function signInAs(userId: string): Promise<void> {
  const response = await adminSession.fetch("/api/admin/impersonate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ userId }),
  });
  const tokens = await response.json() as Tokens;
  const fragment = new URLSearchParams({
    svc_access_token: tokens.accessToken,
    svc_refresh_token: tokens.refreshToken,
    svc_expires_in: String(tokens.expiresIn),
    svc_user_id: tokens.userId,
  });
  open(`/#${fragment}`, "_blank", "noopener");
}
