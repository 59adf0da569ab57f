/** Administrators' functions on files, at `_admin/files:<name>`. Full scans are in `admin_actions.ts`. */
import { z } from "zod";
import { UserError } from "../../errors.ts";
import { paginationOpts, type PaginationResult } from "../../functions/api/service.ts";
import { fileApiLimits } from "../../functions/limits.ts";
import { storageLimits } from "../limits.ts";
import { adminMutation, adminQuery, type StorageDoc } from "../tables.ts";
import type { FileMetadata } from "./ctx.ts";

/** Lists files, newest first. `contentType` filters by prefix, such as `image/`. */
export const list = adminQuery({
  args: {
    paginationOpts,
    contentType: z.string().max(storageLimits.contentTypeCharsMax).optional(),
    /** Substring of the file name, ignoring case. */
    name: z.string().max(storageLimits.nameCharsMax).optional(),
    createdBy: z.string().optional(),
  },
  handler: async (ctx, args): Promise<PaginationResult<FileMetadata>> => {
    const { paginationOpts, contentType = "", name = "", createdBy } = args;
    const wanted = name.toLowerCase();
    const files = ctx.db.query("_storage").order("desc");
    const kept = contentType === "" && wanted === "" && createdBy === undefined
      ? files
      : files.filter((file) =>
        (file.contentType ?? "").startsWith(contentType) &&
        (file.name ?? "").toLowerCase().includes(wanted) &&
        (createdBy === undefined || file.createdBy === createdBy)
      );
    const read = { ...paginationOpts, maximumRowsRead: storageLimits.filesReadMax };
    const { page, ...rest } = await kept.paginate(read);
    return { ...rest, page: page.map(facts) };
  },
});

/** Returns one file, or `null`. */
export const get = adminQuery({
  args: { fileId: z.string() },
  handler: async (ctx, { fileId }): Promise<FileMetadata | null> => {
    const id = ctx.db.normalizeId("_storage", fileId);
    const file = id === null ? null : await ctx.db.get(id);
    return file === null ? null : facts(file);
  },
});

/** Returns a signed preview URL, which private storage requires; `null` if the file does not exist. */
export const url = adminQuery({
  args: { fileId: z.string(), ttlSeconds: z.number().positive().max(fileApiLimits.signedUrlSecondsMax) },
  handler: async (ctx, { fileId, ttlSeconds }): Promise<string | null> =>
    await ctx.runQuery("_ctx/storage:signedUrl" as never, { id: fileId, ttlSeconds } as never),
});

/** Returns a URL for one upload within the hour, attributed to the administrator. */
export const uploadUrl = adminMutation({
  args: {},
  handler: async (ctx): Promise<string> =>
    await ctx.runMutation("_ctx/storage:generateUploadUrl" as never, {} as never),
});

/** Deletes files atomically. Their contents are removed after the commit. */
export const remove = adminMutation({
  args: { fileIds: z.array(z.string()).min(1).max(storageLimits.removedAtOnceMax) },
  handler: async (ctx, { fileIds }): Promise<{ deleted: number }> => {
    for (const fileId of new Set(fileIds)) {
      const id = ctx.db.normalizeId("_storage", fileId);
      if (id === null || await ctx.db.get(id) === null) {
        throw new UserError("file_not_found", `File not found: ${fileId}`, { fileId });
      }
      await ctx.runMutation("_ctx/storage:deleteFile" as never, { id } as never);
    }
    return { deleted: new Set(fileIds).size };
  },
});

function facts({ _id, _creationTime, sha256, size, ...file }: StorageDoc<"_storage">): FileMetadata {
  const { contentType = null, name = null, createdBy = null } = file;
  return { _id, _creationTime, contentType, name, sha256, size, createdBy };
}
