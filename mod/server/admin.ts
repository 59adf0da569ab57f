/** The admin endpoints as this server is configured: what they need of accounts is handed to them here. */
import { Hono } from "hono";
import type { AccountService } from "../auth/mod.ts";
import type { Log } from "../kit/log.ts";
import { adminRoutes } from "../ops/routes.ts";
import type { BackendSurroundings } from "./backend.ts";

export interface StartAdminOptions extends Pick<BackendSurroundings, "restart"> {
  readonly accounts: Pick<AccountService, "authenticator" | "sessions">;
  readonly log: Log;
}

export interface Admin {
  /** For `/api/admin`. */
  readonly routes: Hono;
}

export function startAdmin({ accounts, restart, log }: StartAdminOptions): Admin {
  const { authenticator, sessions } = accounts;
  const routes = new Hono().route(
    "/",
    adminRoutes({
      async verify(token) {
        const verification = await authenticator.verify(token);
        return verification.ok ? verification.identity : null;
      },
      impersonate: (call) => sessions.impersonate(call),
      restart,
      log,
    }),
  );
  return { routes };
}
