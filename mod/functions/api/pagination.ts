/** The argument by which clients ask for pages. */
import type { z } from "zod";
import { zod } from "./current_zod.ts";
import { functionLimits } from "../../limits.ts";

type PaginationSchema = z.ZodObject<{
  cursor: z.ZodNullable<z.ZodString>;
  numItems: z.ZodInt;
  endCursor: z.ZodOptional<z.ZodNullable<z.ZodString>>;
}, z.core.$strip>;

/** {@linkcode paginationOpts}, made with the zod of now. */
export function paginationSchema(): PaginationSchema {
  return zod.object({
    cursor: zod.string().nullable(),
    numItems: zod.int().min(1).max(functionLimits.pageItemsMax),
    endCursor: zod.string().nullable().optional(),
  });
}

/**
 * Schema of the options of `paginate`, for queries that clients show page by page (`usePaginatedQuery`). The argument
 * has to be called `paginationOpts`; `numItems` is bounded, because clients choose it. What they get with an `endCursor`
 * is bounded by what a call may read, as with `collect`. Other clients send further fields, such as an `id` of their
 * own: those change nothing here and are left out.
 *
 * @example
 * ```ts
 * export const page = query({
 *   args: { list: id("lists"), paginationOpts },
 *   handler: (ctx, { list, paginationOpts }) =>
 *     ctx.db.query("items").withIndex("by_list", (q) => q.eq("list", list)).paginate(paginationOpts),
 * });
 * ```
 */
export const paginationOpts: PaginationSchema = paginationSchema();
