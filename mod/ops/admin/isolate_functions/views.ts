/** Saved views of tables and saved queries of the console, at `_admin/views:<name>`, by administrator and table. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import { opsLimits } from "../../limits.ts";
import {
  type AdminDoc,
  adminMutation,
  type AdminMutationCtx,
  adminQuery,
  systemMutation,
} from "../tables.ts";
import { findAccount } from "./audit.ts";

type ViewRow = AdminDoc<"_admin_views">;

/** The columns of a table. */
export type TableColumns = Pick<ViewRow, "hidden" | "widths" | "frozen">;

/** A view of a table. The one without a name has the columns as arranged last. Queries of the console have the table "". */
export interface TableView extends TableColumns, Pick<ViewRow, "name" | "filters" | "query"> {}

const nameSchema = z.string().max(opsLimits.viewNameCharsMax);
const columnName = z.string().max(opsLimits.viewNameCharsMax);
const columnsMax = opsLimits.viewColumnsMax;

/** Lists the caller's views of a table, by name. */
export const list = adminQuery({
  args: { table: z.string() },
  handler: async (ctx, { table }): Promise<TableView[]> => {
    const admin = ctx.auth.adminId() ?? "";
    const rows = await ctx.db.query("_admin_views")
      .withIndex("by_admin", (q) => q.eq("admin", admin).eq("table", table)).collect();
    return rows.map(({ name, filters, hidden, widths, frozen, query }) => ({
      ...{ name, filters, hidden, widths, frozen },
      ...query !== undefined && { query },
    }));
  },
});

/** Stores a view of the caller, or replaces the one of that name. Throws `too_many_views`. */
export const save = adminMutation({
  args: {
    table: nameSchema.min(1),
    name: nameSchema,
    /** Filters and order as parameters of an address. */
    filters: z.string().max(opsLimits.viewFiltersCharsMax),
    hidden: z.array(columnName).max(columnsMax),
    /** Widths in pixels of columns that were resized. */
    widths: z.record(columnName, z.int().min(1).max(10_000))
      .refine((widths) => Object.keys(widths).length <= columnsMax, "Too many columns"),
    /** First columns that stay while scrolling sideways. */
    frozen: z.int().min(0).max(columnsMax),
  },
  handler: store,
});

/** Stores a query of the console in the same way, for roles that may run it. */
export const saveQuery = adminMutation({
  args: { name: nameSchema.min(1), query: z.string().max(opsLimits.viewQueryCharsMax) },
  handler: (ctx, query) =>
    store(ctx, { ...query, table: "", filters: "", hidden: [], widths: {}, frozen: 0 }),
});

async function store(
  ctx: AdminMutationCtx,
  view: Omit<ViewRow, "_id" | "_creationTime" | "admin">,
): Promise<null> {
  const admin = ctx.auth.adminId() ?? "";
  const stored = await find(ctx, view);
  if (stored !== null) {
    await ctx.db.replace(stored._id, { ...view, admin });
    return null;
  }
  const { viewsMax } = opsLimits;
  const own = await ctx.db.query("_admin_views").withIndex("by_admin", (q) => q.eq("admin", admin))
    .take(viewsMax);
  if (own.length === viewsMax) {
    // The columns of another table are the least valuable.
    const [other] = own.filter(({ name }) => name === "");
    if (other === undefined) {
      throw new UserError("too_many_views", `You have ${viewsMax} saved views: remove one`);
    }
    await ctx.db.delete(other._id);
  }
  await ctx.db.insert("_admin_views", { ...view, admin });
  return null;
}

/** Removes a view of the caller. */
export const remove = adminMutation({
  args: { table: z.string(), name: z.string() },
  handler: async (ctx, view): Promise<null> => {
    const stored = await find(ctx, view);
    if (stored !== null) await ctx.db.delete(stored._id);
    return null;
  },
});

/**
 * Deletes views of the first administrator after `after` if the administrator was removed. Returns where to continue, or `null`
 * at the end.
 */
export const clean = systemMutation({
  args: { after: z.string() },
  handler: async (ctx, { after }): Promise<string | null> => {
    const [row] = await ctx.db.query("_admin_views").withIndex("by_admin", (q) => q.gt("admin", after)).take(
      1,
    );
    if (row === undefined) return null;
    const { admin } = row;
    if (await findAccount(ctx.db, "_admins", admin) !== null) return admin;
    const left = await ctx.db.query("_admin_views").withIndex("by_admin", (q) => q.eq("admin", admin))
      .take(opsLimits.viewsDeletedAtOnce);
    for (const { _id } of left) await ctx.db.delete(_id);
    return after;
  },
});

async function find(
  ctx: AdminMutationCtx,
  { table, name }: { readonly table: string; readonly name: string },
): Promise<ViewRow | null> {
  const admin = ctx.auth.adminId() ?? "";
  return await ctx.db.query("_admin_views")
    .withIndex("by_admin", (q) => q.eq("admin", admin).eq("table", table).eq("name", name)).unique();
}
