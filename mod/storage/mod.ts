/** File storage, as the server wires it. */
import { type Context, Hono } from "hono";
import type { CommitEntry } from "../engine/types.ts";
import type { MainAction } from "../functions/main_actions.ts";
import { type CallPort, SystemCalls } from "../functions/system_calls.ts";
import type { Log } from "../kit/log.ts";
import { ActionFiles } from "./action_files.ts";
import { fileActions } from "./admin_actions.ts";
import { BlobIntakes } from "./uploads/blob_intake.ts";
import { type BlobStore, readOnlyBlobs } from "./blobs/blob_store.ts";
import { FileMetadataCache } from "./file_metadata_cache.ts";
import { FileTraffic } from "./stored_file.ts";
import { QuickReads, Reads } from "./reads/reads.ts";
import { createCleanup, Removals } from "./cleanup.ts";
import { resumableRoutes } from "./resumable/routes.ts";
import { ResumableUploads } from "./resumable/uploads.ts";
import { readRoutes, uploadRoutes } from "./routes.ts";
import { SmallBlobCache } from "./blobs/small_blob_cache.ts";
import { ProcessThumbnailMaker, type ThumbnailMaker } from "./thumbnails/maker.ts";
import { Thumbnails } from "./thumbnails/thumbnails.ts";
import { Uploads, UploadUrls } from "./uploads/uploads.ts";
import { UrlSigner } from "./url_signer.ts";

export { blobsProbe, type BlobStore, type BlobWriter, openBlobs } from "./blobs/blob_store.ts";
export { storageFeature } from "./tables.ts";
export type { StorageSettings } from "./isolate_functions/ctx.ts";
export { parseSize } from "./thumbnails/spec.ts";
export type { FileTraffic } from "./stored_file.ts";
export { ImportedFileStore } from "./imported_files.ts";

export interface StorageOptions {
  /** Key of URL signatures. */
  readonly urlKey: Uint8Array;
  readonly port: CallPort;
  /** Disposed with the storage. */
  readonly store: BlobStore;
  /** Folder of unfinished resumable uploads. For a local store it must be on the same disk. */
  readonly spoolDir: string;
  /** Prefix of URLs without a trailing slash; empty for URLs relative to the server. */
  readonly baseUrl: string;
  /** Maximum upload size in bytes. */
  readonly uploadBytesMax: number;
  /** Whether files can be read through signed URLs only. */
  readonly private: boolean;
  /** Allowed thumbnail sizes, as `WxH`; `null` allows any. */
  readonly thumbnailSizes: readonly string[] | null;
  /** Disposed with the storage. */
  readonly thumbnailMaker?: ThumbnailMaker;
  /** Whether another server owns the files: nothing is written or removed. */
  readonly readOnly?: boolean;
  /** Waits until commits of other servers are applied here, with a timeout. Absent without other servers. */
  readonly caughtUp?: (() => Promise<void>) | undefined;
  /** How long the contents of deleted files are retained. */
  readonly keepDeletedMs: number;
  /** Time of the newest earlier database state that is still stored, or `null`. */
  readonly databaseReplacedAt?: () => Promise<number | null>;
  /** Whether all other servers' files are known here, or the orphan sweep is skipped. Absent without other servers. */
  readonly knowsAll?: () => boolean;
  /** Returns the client address of a request. */
  readonly clientOf: (c: Context) => string;
  /** Sent with every read response. Optional. */
  readonly extraHeaders?: Readonly<Record<string, string>>;
  readonly log: Log;
  readonly now?: () => number;
  /** Time without bytes after which an upload fails. */
  readonly uploadStallMs?: number;
}

/** The storage API for the rest of the server. */
export interface StorageService extends AsyncDisposable {
  /** Upload routes, below `/api/storage`. */
  readonly routes: Hono;
  /** Routes below `/api/storage` that set all headers. Mount them before other middleware, which doubles the cost of a read. */
  readonly completeRoutes: Hono;
  /** Answers the most frequent reads, or returns `null`. Call it before the router. */
  readAtOnce(request: Request): Response | null;
  /** Implement `ctx.storage` of actions, by function path. */
  readonly actions: ReadonlyMap<string, MainAction>;
  /** Stores a file whose content is in memory. Returns its id. */
  readonly store: ActionFiles["store"];
  /** Admin actions that run in the main process, by function path. */
  readonly adminActions: ReadonlyMap<string, MainAction>;
  /** Counters of stored and read files. */
  readonly traffic: Readonly<FileTraffic>;
  /** Call with each group of commits, in order. */
  applyCommits(entries: readonly CommitEntry[]): void;
  /** Call if commits may have been missed. */
  recheck(): void;
  /** Runs the periodic cleanup now. */
  sweep(): Promise<void>;
}

/** Creates the file storage and loads unfinished resumable uploads. */
export async function createStorage(options: StorageOptions): Promise<StorageService> {
  const { port, readOnly = false, log, now = Date.now, extraHeaders = {} } = options;
  const store = readOnly ? readOnlyBlobs(options.store) : options.store;
  const calls = new SystemCalls(port);
  const signer = new UrlSigner(options.urlKey);
  const facts = new FileMetadataCache({ calls, caughtUp: options.caughtUp });
  const intakes = new BlobIntakes({ store, bytesMax: options.uploadBytesMax });
  const traffic = new FileTraffic();
  const urls = new UploadUrls({ signer, calls, now });
  const stall = options.uploadStallMs !== undefined && { stallMs: options.uploadStallMs };
  const shared = { urls, calls, store, bytesMax: options.uploadBytesMax, traffic, now, ...stall };
  const uploads = new Uploads({ ...shared, intakes });
  const resumables = await ResumableUploads.open({ ...shared, folder: options.spoolDir });
  const removals = new Removals({ calls, store, keepMs: options.keepDeletedMs, now, log });
  const sweeper = readOnly ? null : createCleanup({
    calls,
    store,
    isPending: (blob) => intakes.isPending(blob) || resumables.isPending(blob),
    removals,
    resumables,
    databaseReplacedAt: options.databaseReplacedAt ?? (() => Promise.resolve(null)),
    knowsAll: options.knowsAll ?? (() => true),
    now,
    log,
  });
  const maker = options.thumbnailMaker ?? new ProcessThumbnailMaker();
  const small = new SmallBlobCache(store);
  const quick = options.private ? null : new QuickReads({
    ...{ facts, small, traffic, extraHeaders },
    thumbnailSizes: options.thumbnailSizes,
  });
  const reads = new Reads({
    signer,
    facts,
    store,
    small,
    private: options.private,
    thumbnails: new Thumbnails({ store, small, facts, maker, keepsDeleted: options.keepDeletedMs > 0 }),
    thumbnailSizes: options.thumbnailSizes,
    extraHeaders,
    now,
  });
  const actionFiles = new ActionFiles({ calls, facts, store, intakes, traffic, now });
  return {
    actions: actionFiles.actions,
    store: (file) => actionFiles.store(file),
    adminActions: fileActions({ calls, now }),
    traffic,
    routes: uploadRoutes({ uploads, clientOf: options.clientOf }),
    completeRoutes: new Hono()
      .route(
        "/resumable",
        resumableRoutes({
          uploads: resumables,
          bytesMax: options.uploadBytesMax,
          baseUrl: options.baseUrl,
          clientOf: options.clientOf,
        }),
      )
      .route("/", readRoutes(reads, { extraHeaders, traffic })),
    readAtOnce: (request) => quick?.respond(request) ?? null,
    applyCommits(entries) {
      facts.applyCommits(entries);
      if (!readOnly) removals.applyCommits(entries);
    },
    recheck() {
      facts.clear();
      if (!readOnly) void removals.run();
    },
    sweep: () => sweeper?.run() ?? Promise.resolve(),
    async [Symbol.asyncDispose]() {
      await resumables[Symbol.asyncDispose]();
      await sweeper?.[Symbol.asyncDispose]();
      await removals.close();
      await actionFiles[Symbol.asyncDispose]();
      await maker[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}
