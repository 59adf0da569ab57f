/** The admin endpoints on real accounts, called as functions, with what stands behind them in the test's hands. */
import { Hono } from "hono";
import { ServiceError } from "../../../mod/errors.ts";
import { failureResponse } from "../../../mod/kit/error_response.ts";
import { adminRoutes, type AdminRoutesOptions } from "../../../mod/ops/routes.ts";
import { startTestAccounts, type TestAccounts } from "../../auth/support/test_accounts.ts";

export interface AdminApp extends AsyncDisposable {
  readonly accounts: TestAccounts;
  readonly adminToken: string;
  readonly logged: { readonly level: string; readonly message: string; readonly fields: unknown }[];
  /** A request below `/api/admin`, in the name of the administrator unless it says otherwise. */
  request(
    path: string,
    init?: RequestInit & { readonly bearer?: string | null },
  ): Promise<Response>;
}

export type AdminAppOptions = Partial<Omit<AdminRoutesOptions, "verify" | "log">>;

export async function startAdminApp(options: AdminAppOptions = {}): Promise<AdminApp> {
  const accounts = await startTestAccounts();
  const logged: AdminApp["logged"] = [];
  const log: AdminRoutesOptions["log"] = (level, message, fields = {}) =>
    void logged.push({ level, message, fields });
  const { authenticator, sessions } = accounts.service;
  const app = new Hono().route(
    "/api/admin",
    adminRoutes({
      async verify(token) {
        const verification = await authenticator.verify(token);
        return verification.ok ? verification.identity : null;
      },
      impersonate: (call) => sessions.impersonate(call),
      restart: null,
      log,
      ...options,
    }),
  );
  app.notFound(() => failureResponse(new ServiceError("not_found"), log));
  app.onError((error) => failureResponse(error, log));
  const { accessToken: adminToken } = await accounts.signInAdmin("root@example.com");
  return {
    accounts,
    adminToken,
    logged,
    async request(path, { bearer = adminToken, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (typeof init.body === "string") headers.set("Content-Type", "application/json");
      if (bearer !== null) headers.set("Authorization", `Bearer ${bearer}`);
      return await app.request(`/api/admin${path}`, { ...init, headers });
    },
    [Symbol.asyncDispose]: () => accounts[Symbol.asyncDispose](),
  };
}

/** Status and the parts of an error's body. */
export async function errorOf(response: Response): Promise<{
  readonly status: number;
  readonly code: string;
  readonly message: string;
}> {
  const { errorMessage, errorData } = await response.json();
  return { status: response.status, code: errorData?.code, message: errorMessage };
}
