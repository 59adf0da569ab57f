/** The admin endpoints on real accounts, called as functions, with controlled dependencies. */
import { Hono } from "hono";
import { join } from "node:path";
import { ServiceError } from "../../../mod/errors.ts";
import { failureResponse } from "../../../mod/kit/error_response.ts";
import { type RestorePort } from "../../../mod/ops/backups/restore/routes.ts";
import { BackupFolder } from "../../../mod/ops/backups/backup_folder.ts";
import { Backups, type MakeBackup } from "../../../mod/ops/backups/backups.ts";
import type { ReplicationPort } from "../../../mod/ops/replication/mod.ts";
import { verifyWith } from "../../../mod/server/features/admin.ts";
import { adminRoutes, type AdminRoutesOptions } from "../../../mod/ops/routes.ts";
import { emptyFolder } from "../../../mod/ops/spooled_body.ts";
import { startTestAccounts, type TestAccounts } from "../../auth/support/test_accounts.ts";

export interface AdminApp extends AsyncDisposable {
  readonly accounts: TestAccounts;
  readonly adminToken: string;
  /** Folder of the backups. */
  readonly backupsDir: string;
  /** Folder of request bodies being received. */
  readonly incomingDir: string;
  readonly logged: { readonly level: string; readonly message: string; readonly fields: unknown }[];
  /** A request below `/api/admin`, by default as the administrator. */
  request(
    path: string,
    init?: RequestInit & { readonly bearer?: string | null },
  ): Promise<Response>;
}

export interface AdminAppOptions {
  /** Removed by the test; by default a new one. */
  readonly dataDir?: string;
  readonly restart?: () => void;
  readonly replication?: ReplicationPort;
  readonly tables?: AdminRoutesOptions["tables"];
  readonly make?: MakeBackup;
  readonly restores?: Partial<RestorePort>;
}

/** Default of dependencies that must not be called. */
const unexpected = (name: string) => () => Promise.reject(new Error(`${name} was not expected`));

export async function startAdminApp(
  { dataDir: given, restart, replication, make = unexpected("a backup"), restores = {}, tables = [] }:
    AdminAppOptions = {},
): Promise<AdminApp> {
  const dataDir = given ?? await Deno.makeTempDir();
  const [backupsDir, incomingDir] = [join(dataDir, "backups"), join(dataDir, "incoming")];
  await emptyFolder(incomingDir);
  const accounts = await startTestAccounts();
  const logged: AdminApp["logged"] = [];
  const log: AdminRoutesOptions["log"] = (level, message, fields = {}) =>
    void logged.push({ level, message, fields });
  const { authenticator, sessions } = accounts.service;
  const app = new Hono().route(
    "/api/admin",
    adminRoutes({
      verify: verifyWith(authenticator),
      impersonate: (call) => sessions.impersonate(call),
      backups: new Backups({ folder: await BackupFolder.open(backupsDir), make, log }),
      restores: {
        stage: unexpected("staging"),
        staged: () => Promise.resolve(null),
        cancel: unexpected("cancelling"),
        ...restores,
      },
      incomingDir,
      tables,
      replication: replication ?? null,
      restart: restart ?? null,
      log,
    }),
  );
  app.notFound(() => failureResponse(new ServiceError("not_found"), log));
  app.onError((error) => failureResponse(error, log));
  const { accessToken: adminToken } = await accounts.signInAdmin("root@example.com");
  return {
    accounts,
    adminToken,
    backupsDir,
    incomingDir,
    logged,
    async request(path, { bearer = adminToken, ...init } = {}) {
      const headers = new Headers(init.headers);
      if (typeof init.body === "string") headers.set("Content-Type", "application/json");
      if (bearer !== null) headers.set("Authorization", `Bearer ${bearer}`);
      return await app.request(`/api/admin${path}`, { ...init, headers });
    },
    async [Symbol.asyncDispose]() {
      await accounts[Symbol.asyncDispose]();
      if (given === undefined) await Deno.remove(dataDir, { recursive: true });
    },
  };
}

/** Status and fields of an error response. */
export async function errorOf(response: Response): Promise<{
  readonly status: number;
  readonly code: string;
  readonly message: string;
}> {
  const { errorMessage, errorData } = await response.json();
  return { status: response.status, code: errorData?.code, message: errorMessage };
}
