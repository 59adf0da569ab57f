/** Rows of settings, and `_admin/settings:list`. Validation and encryption are in `settings.ts` of the main process. */
import { z } from "zod";
import type { AdminRole } from "../../../functions/admin_roles.ts";
import type { AnyDataModel, SystemQueryCtx } from "../../../functions/api/service.ts";
import { type AdminDoc, type AdminMutationCtx, adminQuery, systemMutation, systemQuery } from "../tables.ts";
import { insertAudit } from "./audit.ts";

/** A setting without its value. */
const specSchema = z.object({
  name: z.string(),
  flag: z.string(),
  env: z.string(),
  kind: z.enum(["switch", "text", "list", "long"]),
  description: z.string(),
  defaultText: z.string().nullable(),
  secret: z.boolean(),
  passwordInUrl: z.boolean(),
  encryptsSecrets: z.boolean(),
  given: z.object({ by: z.enum(["flag", "env"]), text: z.string().nullable() }).nullable(),
});

/** Passed to each isolate when it starts. */
const configuration = z.object({ specs: z.array(specSchema), key: z.string() });
let configured: z.output<typeof configuration> = { specs: [], key: "" };

/** Called once in each isolate, before any function runs. */
export function configureSettings(settings: unknown): void {
  configured = configuration.parse(settings);
}

/** A setting as administrators see it. */
export interface SettingView extends z.output<typeof specSchema> {
  /** Source of the effective value. */
  readonly source: "flag" | "env" | "setting" | "default";
  /** Whether administrators have set it, even if overridden. */
  readonly set: boolean;
  /** The value they have set; `null` for secrets. URLs are without their password, for viewers without the user too. */
  readonly text: string | null;
  /** Whether it was encrypted with another `auth_secret.key` and must be entered again. */
  readonly unreadable: boolean;
}

/** Lists all settings in the order of the options, with the source of each value. */
export const list = adminQuery({
  args: {},
  handler: async (ctx): Promise<SettingView[]> => {
    const stored = new Map((await ctx.db.query("_settings").collect()).map((row) => [row.name, row]));
    const adminId = ctx.auth.adminId();
    const role = adminId === null ? null : await (ctx as unknown as SystemQueryCtx<AnyDataModel>)
      .runQuery("_system/auth:adminRole" as never, { adminId } as never) as AdminRole | null;
    return configured.specs.map((known) => {
      const row = stored.get(known.name);
      // User names in URLs are part of a login.
      const hidesUser = known.passwordInUrl && role === "viewer";
      const given = known.given && hidesUser
        ? { ...known.given, text: withoutUser(known.given.text) }
        : known.given;
      const spec = { ...known, given };
      const unreadable = row?.key !== undefined && row.key !== configured.key;
      const source = spec.given?.by ?? (row !== undefined && !unreadable ? "setting" : "default");
      return {
        ...spec,
        source,
        set: row !== undefined,
        text: hidesUser ? withoutUser(row?.text) : row?.text ?? null,
        unreadable,
      };
    });
  },
});

function withoutUser(text: string | null | undefined): string | null {
  const url = URL.parse(text ?? "");
  if (url !== null) url.username = "";
  return url?.href ?? null;
}

/** Returns how the dashboard marks this server: name and color of its environment, if set. */
export const environment = adminQuery({
  args: {},
  handler: async (ctx): Promise<{ name: string | null; color: string | null }> => {
    const valueOf = async (name: string) => {
      const given = configured.specs.find((spec) => spec.name === name)?.given;
      if (given) return given.text;
      const row = await ctx.db.query("_settings").withIndex("by_name", (q) => q.eq("name", name)).unique();
      return row?.text ?? null;
    };
    return { name: await valueOf("environmentName"), color: await valueOf("environmentColor") };
  },
});

/** Returns the rows, with encrypted values. */
export const rows = systemQuery({
  args: {},
  handler: async (ctx): Promise<AdminDoc<"_settings">[]> => await ctx.db.query("_settings").collect(),
});

const changeSchema = z.strictObject({
  name: z.string(),
  /** `null` deletes the setting. */
  value: z.union([
    /** With a key, the string contains encrypted secrets. */
    z.strictObject({ text: z.string(), key: z.string().optional() }),
    /** With a string, that is shown instead. */
    z.strictObject({ sealed: z.string(), key: z.string(), text: z.string().optional() }),
    z.null(),
  ]),
});
export type SettingRowChange = z.output<typeof changeSchema>;

/** Changes settings atomically and records the previous values in the audit log. */
export const change = systemMutation({
  args: { changes: z.array(changeSchema), admin: z.string(), session: z.string().nullable() },
  handler: async (ctx, { changes, admin, session }): Promise<null> => {
    const noted: { setting: string; before: unknown; after: unknown }[] = [];
    for (const { name, value } of changes) {
      const row = await ctx.db.query("_settings").withIndex("by_name", (q) => q.eq("name", name)).unique();
      const after = value === null ? null : { name, ...value };
      await store(ctx, { row, after });
      noted.push({ setting: name, before: shown(row), after: shown(after) });
    }
    const args = { settings: changes.map(({ name }) => name).join(", ") };
    const action = "_admin/settings:set";
    await insertAudit(ctx, { admin, session, action, args, outcome: "ok", changes: noted });
    return null;
  },
});

async function store(
  ctx: AdminMutationCtx,
  { row, after }: {
    readonly row: AdminDoc<"_settings"> | null;
    readonly after:
      | { readonly name: string; readonly text?: string | undefined; readonly sealed?: string }
      | null;
  },
): Promise<void> {
  if (row !== null && after !== null) await ctx.db.replace(row._id, after);
  else if (row !== null) await ctx.db.delete(row._id);
  else if (after !== null) await ctx.db.insert("_settings", after);
}

/** For secrets, returns only that one is set. */
function shown(row: object | null): string | null {
  if (row === null) return null;
  const { sealed, text } = row as { readonly sealed?: string; readonly text?: string };
  return sealed === undefined && text !== undefined ? withoutSecrets(text) : "(secret)";
}

/** Removes encrypted secrets, because even these must not be disclosed. */
function withoutSecrets(text: string): string {
  return text.replaceAll(/("sealed":\s*")[\w-]*"/g, '$1…"');
}
