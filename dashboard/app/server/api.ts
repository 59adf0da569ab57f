/** Typed references to the administrators' system functions. */
import { type FunctionKind, type FunctionReference, functionReference } from "syncline/client";
import type { FactorProof, NewTotp } from "syncline/accounts";
import type {
  administratorFunctions,
  apiKeyFunctions,
  userFunctions,
} from "../../../mod/auth/isolate_functions/mod.ts";
import type { AdminRole } from "../../../mod/functions/admin_roles.ts";
import type * as alerts from "../../../mod/ops/alerts/isolate_functions.ts";
import type * as audit from "../../../mod/ops/admin/isolate_functions/audit.ts";
import type * as data from "../../../mod/ops/admin/isolate_functions/data.ts";
import type * as functions from "../../../mod/ops/admin/isolate_functions/functions.ts";
import type { choices, labels } from "../../../mod/ops/admin/isolate_functions/references.ts";
import type * as settings from "../../../mod/ops/admin/isolate_functions/settings.ts";
import type * as views from "../../../mod/ops/admin/isolate_functions/views.ts";
import type * as work from "../../../mod/ops/admin/isolate_functions/work.ts";
import type * as migrations from "../../../mod/ops/deploy/isolate_functions/migrations.ts";
import type { VariableChanges, VariableInfo } from "../../../mod/ops/deploy/variables.ts";
import type { DocumentChanges } from "../../../mod/ops/admin/document_history.ts";
import type { ConsoleRun } from "../../../mod/ops/admin/query_console.ts";
import type { FunctionRun } from "../../../mod/ops/admin/run_function.ts";
import type { ActiveProviders, CachedSizes } from "../../../mod/ops/admin/actions.ts";
import type { ProviderCheck } from "../../../mod/auth/oauth/provider_check.ts";
import type { ProbeReport } from "../../../mod/kit/locations/location_probe.ts";
import type * as schedule from "../../../mod/scheduler/isolate_functions/admin.ts";
import type * as files from "../../../mod/storage/isolate_functions/admin.ts";
import type { FileReference } from "../../../mod/storage/isolate_functions/references.ts";

type ReferenceTo<Declared> = Declared extends {
  readonly "~registered"?: {
    readonly kind: infer Kind extends FunctionKind;
    readonly args: (args: infer Args) => void;
    readonly result: infer Result;
  };
} ? FunctionReference<Kind, Args, Result>
  : never;

function references<Module, const Name extends keyof Module & string>(
  path: string,
  names: readonly Name[],
): { readonly [Key in Name]: ReferenceTo<Module[Key]> } {
  return Object.fromEntries(names.map((name) => [name, functionReference(`${path}:${name}`)])) as never;
}

const action = <Args, Result>(path: string): FunctionReference<"action", Args, Result> =>
  functionReference<"action", Args, Result>(path);

/** Selects documents. See `mod/ops/admin/isolate_functions/where.ts`. */
export interface Where {
  readonly table: string;
  readonly index?: string;
  readonly range?: { readonly [Bound in "eq" | "gt" | "gte" | "lt" | "lte"]?: unknown };
  readonly search?: {
    readonly index: string;
    readonly text: string;
    readonly eq?: Readonly<Record<string, unknown>>;
  };
  readonly conditions?: readonly Condition[];
  readonly order?: "asc" | "desc";
}

export type Condition =
  | {
    readonly field: string;
    readonly op: "eq" | "neq" | "gt" | "gte" | "lt" | "lte";
    readonly value: unknown;
  }
  | { readonly field: string; readonly op: "contains"; readonly value: string }
  | { readonly field: string; readonly op: "missing" | "present" };

/** A part of `seen` for a field: its value, or that it was absent. */
export function seenField(name: string, value: unknown): Readonly<Record<string, unknown>> {
  return { [name]: value === undefined ? { $missing: true } : value };
}

export type MailKind = "verify" | "reset" | "magic" | "change" | "device";

/** The run identity of a function call; `null` for a signed-out caller. */
export type RunAs = { readonly userId: string } | { readonly adminId: string } | null;

export const api = {
  administrators: {
    ...references<
      typeof administratorFunctions,
      | "list"
      | "me"
      | "sessions"
      | "endOwnSessions"
      | "endSession"
      | "endSessions"
      | "remove"
      | "renamePasskey"
      | "setRole"
    >(
      "_admin/administrators",
      [
        "list",
        "me",
        "sessions",
        "endOwnSessions",
        "endSession",
        "endSessions",
        "remove",
        "renamePasskey",
        "setRole",
      ],
    ),
    create: action<{ email: string; password: string; role: AdminRole }, null>(
      "_admin/administrators:create",
    ),
    changePassword: action<{ currentPassword: string; newPassword: string }, null>(
      "_admin/administrators:changePassword",
    ),
    confirmPassword: action<{ password: string }, null>("_admin/administrators:confirmPassword"),
    removeFactors: action<{ adminId: string }, null>("_admin/administrators:removeFactors"),
    startTotp: action<{ password: string }, NewTotp>("_admin/administrators:startTotp"),
    confirmTotp: action<
      { enrolmentId: string; code: string },
      { recoveryCodes: readonly string[] }
    >("_admin/administrators:confirmTotp"),
    proveFactor: action<FactorProof, null>("_admin/administrators:proveFactor"),
    removeTotp: action<Record<never, never>, null>("_admin/administrators:removeTotp"),
    renewRecoveryCodes: action<Record<never, never>, { recoveryCodes: readonly string[] }>(
      "_admin/administrators:renewRecoveryCodes",
    ),
  },
  alerts: {
    ...references<typeof alerts, "acknowledge" | "mute" | "notes" | "resume">("_admin/alerts", [
      "acknowledge",
      "mute",
      "notes",
      "resume",
    ]),
    test: action<
      Record<never, never>,
      readonly { readonly channel: string; readonly error: string | null }[]
    >(
      "_admin/alerts:test",
    ),
  },
  audit: references<typeof audit, "list">("_admin/audit", ["list"]),
  data: {
    ...references<
      typeof data,
      | "tables"
      | "documents"
      | "count"
      | "position"
      | "get"
      | "tableOf"
      | "insert"
      | "patch"
      | "patchMany"
      | "replace"
      | "remove"
    >(
      "_admin/data",
      [
        "tables",
        "documents",
        "count",
        "position",
        "get",
        "tableOf",
        "insert",
        "patch",
        "patchMany",
        "replace",
        "remove",
      ],
    ),
    ...references<{ choices: typeof choices; labels: typeof labels }, "choices" | "labels">(
      "_admin/data",
      ["choices", "labels"],
    ),
    sizes: action<Record<never, never>, CachedSizes>("_admin/data:sizes"),
    history: action<{ id: string }, DocumentChanges>("_admin/data:history"),
    deleteWhere: action<Where, { workId: string }>("_admin/data:deleteWhere"),
  },
  apiKeys: {
    ...references<typeof apiKeyFunctions, "list" | "revoke">("_admin/apiKeys", ["list", "revoke"]),
    create: action<
      {
        name: string;
        functions?: readonly string[];
        userId?: string;
        deploy?: true;
        expiresAt?: number;
      },
      { keyId: string; key: string }
    >("_admin/apiKeys:create"),
  },
  env: {
    list: action<Record<never, never>, readonly VariableInfo[]>("_admin/env:list"),
    set: action<{ changes: VariableChanges }, { overridden: readonly string[] }>("_admin/env:set"),
  },
  files: {
    ...references<typeof files, "list" | "get" | "url" | "uploadUrl" | "remove">("_admin/files", [
      "list",
      "get",
      "url",
      "uploadUrl",
      "remove",
    ]),
    references: action<
      { fileId: string },
      { references: readonly FileReference[]; read: number; more: boolean }
    >("_admin/files:references"),
    orphans: action<Record<never, never>, { fileIds: readonly string[]; read: number; more: boolean }>(
      "_admin/files:orphans",
    ),
  },
  functions: {
    ...references<typeof functions, "list" | "watch">("_admin/functions", ["list", "watch"]),
    run: action<{ path: string; args: Record<string, unknown>; as: RunAs }, FunctionRun>(
      "_admin/functions:run",
    ),
    console: action<
      { source: string; as: RunAs } | { path: string; args: Record<string, unknown>; as: RunAs },
      ConsoleRun
    >("_admin/functions:console"),
  },
  migrations: {
    ...references<typeof migrations, "list" | "halt">("_admin/migrations", ["list", "halt"]),
    run: action<{ path: string; table: string; fromStart?: boolean }, migrations.StartedMigration>(
      "_admin/migrations:run",
    ),
    tryOut: action<{ path: string; table: string }, { documents: number; changed: number }>(
      "_admin/migrations:tryOut",
    ),
  },
  schedule: references<
    typeof schedule,
    "jobs" | "orphanedJobs" | "crons" | "cancelJob" | "runJobNow" | "retryJob" | "runCronNow"
  >(
    "_admin/schedule",
    ["jobs", "orphanedJobs", "crons", "cancelJob", "runJobNow", "retryJob", "runCronNow"],
  ),
  settings: {
    ...references<typeof settings, "environment" | "list">("_admin/settings", ["environment", "list"]),
    set: action<{ changes: Record<string, string | null> }, { overridden: readonly string[] }>(
      "_admin/settings:set",
    ),
    testMail: action<{ to: string }, null>("_admin/settings:testMail"),
    providers: action<Record<never, never>, ActiveProviders>("_admin/settings:providers"),
    testProvider: action<{ name: string; origin: string }, ProviderCheck>("_admin/settings:testProvider"),
    testBucket: action<{ location: string }, ProbeReport>("_admin/settings:testBucket"),
    previewMail: action<{ kind: MailKind; text?: string }, { subject: string; text: string }>(
      "_admin/settings:previewMail",
    ),
  },
  users: {
    ...references<
      typeof userFunctions,
      "list" | "get" | "emails" | "edit" | "endSession" | "endSessions"
    >(
      "_admin/users",
      ["list", "get", "emails", "edit", "endSession", "endSessions"],
    ),
    create: action<
      { email: string; password?: string; name?: string; emailVerified?: boolean },
      { userId: string }
    >("_admin/users:create"),
    setPassword: action<{ userId: string; password: string }, { ended: number }>("_admin/users:setPassword"),
    sendReset: action<{ userId: string }, unknown>("_admin/users:sendReset"),
    sendVerification: action<{ userId: string }, unknown>("_admin/users:sendVerification"),
    remove: action<{ userId: string }, unknown>("_admin/users:remove"),
    removeFactors: action<{ userId: string }, null>("_admin/users:removeFactors"),
    removePasskey: action<{ userId: string; passkeyId: string }, null>("_admin/users:removePasskey"),
  },
  views: references<typeof views, "list" | "remove" | "save" | "saveQuery">("_admin/views", [
    "list",
    "remove",
    "save",
    "saveQuery",
  ]),
  work: references<typeof work, "list" | "get" | "cancel" | "forget">("_admin/work", [
    "list",
    "get",
    "cancel",
    "forget",
  ]),
};
