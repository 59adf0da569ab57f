/** System functions of file storage, by the paths under which they are called. */
import type { SystemModule } from "../../functions/system_module.ts";
import { get, list, remove, uploadUrl, url as adminUrl } from "./admin.ts";
import { configureStorage, deleteFile, generateUploadUrl, metadata, signedUrl, url } from "./ctx.ts";
import {
  commitFile,
  deletedBlobs,
  findFile,
  forgetDeletedBlobs,
  forgetUsedUploads,
  importFiles,
  isUploadUsed,
  newFileIds,
  orphansAmong,
  uploadedFile,
} from "./files.ts";
import { filesBatch, referencesBatch } from "./references.ts";
import { storageFeature, tables } from "../tables.ts";

/** Called by the server only, at `_system/storage:<name>`. */
export const systemFunctions = {
  commitFile,
  deletedBlobs,
  findFile,
  importFiles,
  newFileIds,
  forgetDeletedBlobs,
  forgetUsedUploads,
  isUploadUsed,
  filesBatch,
  orphansAmong,
  referencesBatch,
  uploadedFile,
};

export { storageFeature };

/** Implement `ctx.storage`, at `_ctx/storage:<name>`. */
export const ctxFunctions = { deleteFile, generateUploadUrl, metadata, signedUrl, url };

/** Called by administrators, at `_admin/files:<name>`. */
export const fileFunctions = { get, list, remove, uploadUrl, url: adminUrl };

/** Modules of file storage that isolates load. */
export const storageModules: readonly SystemModule[] = [
  {
    path: "_system/storage",
    tables,
    functions: systemFunctions,
    settings: { name: storageFeature, configure: configureStorage },
  },
  { path: "_ctx/storage", tables: {}, functions: ctxFunctions },
  { path: "_admin/files", tables: {}, functions: fileFunctions },
];
