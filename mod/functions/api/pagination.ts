/** The argument with which clients request pages. */
import type { z } from "zod";
import { zod } from "./current_zod.ts";
import { functionLimits } from "../../limits.ts";

type PaginationSchema = z.ZodObject<{
  cursor: z.ZodNullable<z.ZodString>;
  numItems: z.ZodInt;
  endCursor: z.ZodOptional<z.ZodNullable<z.ZodString>>;
}, z.core.$strip>;

/** {@linkcode paginationOpts}, built with the current zod. */
export function paginationSchema(): PaginationSchema {
  return zod.object({
    cursor: zod.string().nullable(),
    numItems: zod.int().min(1).max(functionLimits.pageItemsMax),
    endCursor: zod.string().nullable().optional(),
  });
}

/**
 * Schema of the options of `paginate`, for queries that clients show page by page (`usePaginatedQuery`). The argument must be
 * named `paginationOpts`. `numItems` is bounded because clients choose it. Pages with an `endCursor` are bounded by the read
 * limits of a call, like `collect`. Unknown fields sent by other clients, such as an `id`, are ignored.
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
