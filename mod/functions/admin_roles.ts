/** Roles of administrators, and the role that each function and each request below `/api/admin` needs. */
import type { FunctionKind } from "../protocol/function_reference.ts";

/** From the least to the most access. */
export const adminRoles = ["viewer", "editor", "owner"] as const;
export type AdminRole = (typeof adminRoles)[number];

export const ROLE_REQUIRED = "role_required";

export function isAllowed(role: AdminRole, required: AdminRole): boolean {
  return adminRoles.indexOf(role) >= adminRoles.indexOf(required);
}

/** Describes a refused call. */
export function roleText(required: AdminRole): string {
  return `Only ${required === "owner" ? "owners" : "editors and owners"} may do this`;
}

interface Rule {
  readonly paths: RegExp;
  readonly role: AdminRole;
}

/** Exceptions from the rule that queries are for viewers and all other functions for editors. The first match decides. */
const FUNCTION_RULES: readonly Rule[] = [
  // The caller's own account.
  {
    paths:
      /^_admin\/administrators:(changePassword|confirmPassword|endOwnSessions|startTotp|confirmTotp|proveFactor|removeTotp|renewRecoveryCodes|startPasskey|addPasskey|startPasskeyProof|provePasskey|renamePasskey|removePasskey)$/,
    role: "viewer",
  },
  // The caller's own views of tables. Saved queries are for those who may run them.
  { paths: /^_admin\/views:(list|remove|save)$/, role: "viewer" },
  // They change nothing.
  {
    paths:
      /^_admin\/(data:sizes|data:history|alerts:issues|settings:previewMail|settings:providers|files:references|files:orphans)$/,
    role: "viewer",
  },
  // It runs code of the app.
  { paths: /^_admin\/functions:watch$/, role: "editor" },
  // Secrets, access and the server itself.
  {
    paths: /^_admin\/(settings:(set|test\w+)|env:\w+|apiKeys:(create|revoke))$/,
    role: "owner",
  },
  {
    paths: /^_admin\/administrators:(create|setRole|remove|removeFactors|endSession|endSessions)$/,
    role: "owner",
  },
];

/** Returns the role that a function of administrators needs. */
export function functionRole(path: string, kind: FunctionKind): AdminRole {
  return FUNCTION_RULES.find(({ paths }) => paths.test(path))?.role ??
    (kind === "query" ? "viewer" : "editor");
}

/** Exceptions from the rule that `GET` is for viewers and all other methods for editors. Paths follow `/api/admin`. */
const REQUEST_RULES: readonly (Rule & { readonly methods: RegExp })[] = [
  // The filter of an export is in its body.
  { methods: /^POST$/, paths: /^\/export\/[^/]+$/, role: "viewer" },
  // Code may contain what only its authors should know.
  { methods: /^(GET|HEAD)$/, paths: /^\/functions\/versions\/[^/]+\/bundle$/, role: "editor" },
  // Archives contain hashes of passwords and secrets.
  { methods: /^(GET|HEAD)$/, paths: /^\/restore\/export\/[^/]+$/, role: "owner" },
  { methods: /^(GET|HEAD)$/, paths: /^\/(scheduled-)?backups\/[^/]+$/, role: "owner" },
  { methods: /^DELETE$/, paths: /^\/backups\/[^/]+$/, role: "owner" },
  {
    methods: /^(POST|DELETE|PUT)$/,
    paths: /^\/restore(\/|$)|^\/(scheduled-)?backups\/[^/]+\/(restore$|export\/)/,
    role: "owner",
  },
  { methods: /./, paths: /^\/functions\/env$/, role: "owner" },
];

/** Returns the role that a request needs. @param path Follows `/api/admin`. */
export function requestRole(method: string, path: string): AdminRole {
  const rule = REQUEST_RULES.find(({ methods, paths }) => methods.test(method) && paths.test(path));
  return rule?.role ?? (/^(GET|HEAD|OPTIONS)$/.test(method) ? "viewer" : "editor");
}
