/** File storage: what the server wires up. */
import { type Context, Hono } from "hono";
import type { CommitEntry } from "../engine/types.ts";
import type { MainAction } from "../functions/main_actions.ts";
import { type CallPort, SystemCalls } from "../functions/system_calls.ts";
import type { Log } from "../kit/log.ts";
import { ActionFiles } from "./action_files.ts";
import { fileActions } from "./admin_actions.ts";
import { BlobIntakes } from "./uploads/blob_intake.ts";
import type { BlobStore } from "./blobs/blob_store.ts";
import { FileFacts } from "./file_facts.ts";
import { FileTraffic } from "./file_traffic.ts";
import { QuickReads } from "./reads/quick_reads.ts";
import { Reads } from "./reads/reads.ts";
import { readOnlyBlobs } from "./blobs/read_only_blobs.ts";
import { Removals } from "./blobs/removals.ts";
import { resumableRoutes } from "./resumable/routes.ts";
import { ResumableUploads } from "./resumable/uploads.ts";
import { readRoutes, uploadRoutes } from "./routes.ts";
import { SmallBlobs } from "./blobs/small_blobs.ts";
import { createSweeper } from "./sweeper.ts";
import { ProcessThumbnailMaker, type ThumbnailMaker } from "./thumbnails/maker.ts";
import { Thumbnails } from "./thumbnails/thumbnails.ts";
import { UploadUrls } from "./uploads/upload_urls.ts";
import { Uploads } from "./uploads/uploads.ts";
import { UrlSigner } from "./url_signer.ts";

export type { BlobStore, BlobWriter, ListedBlob } from "./blobs/blob_store.ts";
export { storageFeature } from "./settings_name.ts";
export type { StorageSettings } from "./isolate_functions/settings.ts";
export { parseSize } from "./thumbnails/spec.ts";
export type { FileTraffic } from "./file_traffic.ts";
export { triedBlobs } from "./blobs/tried_blobs.ts";
export { LocalBlobs } from "./blobs/local_blobs.ts";
export { ImportedFiles } from "./imported_files.ts";

export interface StorageOptions {
  /** Key of URL signatures. */
  readonly urlKey: Uint8Array;
  readonly port: CallPort;
  /** Closed with the storage. */
  readonly store: BlobStore;
  /** Folder of uploads that come in pieces, until they are whole; for a store in a folder, on the same disk. */
  readonly spoolDir: string;
  /** What URLs begin with, without a slash at its end; empty for URLs relative to the server. */
  readonly baseUrl: string;
  /** Largest upload, in bytes. */
  readonly uploadBytesMax: number;
  /** Whether signed URLs are the only read path. */
  readonly private: boolean;
  /** Sizes that thumbnails may have, as `WxH`; `null` for any. */
  readonly thumbnailSizes: readonly string[] | null;
  /** Closed with the storage. */
  readonly thumbnailMaker?: ThumbnailMaker;
  /** Whether files are another server's, which may use the same store: nothing is written and nothing removed. */
  readonly readOnly?: boolean;
  /** Resolves when what was committed anywhere is known here, or late; absent where nothing is committed elsewhere. */
  readonly caughtUp?: (() => Promise<void>) | undefined;
  /** Whether another server still takes uploads in the same folders: those in pieces wait for `recover`. */
  readonly shared?: boolean;
  /** How long the contents of deleted files are kept. */
  readonly keepDeletedMs: number;
  /** When the newest earlier state of the database was put aside that still lies there; `null` when none does. */
  readonly asideSince?: () => Promise<number | null>;
  /**
   * Whether no other server can have stored files by now of which this one does not know; absent where there is no other.
   * While it is not so contents without a document are left alone.
   */
  readonly knowsAll?: () => boolean;
  /** Address of the client that sent a request. */
  readonly clientOf: (c: Context) => string;
  /** Sent with every answer to a read; none unless told. */
  readonly extraHeaders?: Readonly<Record<string, string>>;
  readonly log: Log;
  readonly now?: () => number;
  /** Time after which an upload without a byte has failed. */
  readonly uploadStallMs?: number;
}

/** Everything files offer to the rest of the server. */
export interface StorageService extends AsyncDisposable {
  /** For uploads, below `/api/storage`. */
  readonly routes: Hono;
  /**
   * For reads and for uploads in pieces, below `/api/storage`. Their answers are complete: mounted before anything that adds
   * headers, reads cost half.
   */
  readonly completeRoutes: Hono;
  /** Answers the most frequent reads; `null` for requests of any other kind. To be asked before any router. */
  readAtOnce(request: Request): Response | null;
  /** Behind `ctx.storage` of actions, by function path. */
  readonly actions: ReadonlyMap<string, MainAction>;
  /** What administrators call and main does, by function path. */
  readonly adminActions: ReadonlyMap<string, MainAction>;
  /** Files stored and read so far. */
  readonly traffic: Readonly<FileTraffic>;
  /** Takes note of commits: to be called with each group, in order. */
  applyCommits(entries: readonly CommitEntry[]): void;
  /** To be called when commits may have been missed. */
  recheck(): void;
  /** Finds the uploads in pieces that a server left which shared the folders, and is gone. Called once, only then. */
  recover(): Promise<void>;
  /** Removes what nobody needs any more now; it is done every now and then anyway. */
  sweep(): Promise<void>;
}

/** Wires file storage up, with the uploads that a server before this one left unfinished. */
export async function createStorage(options: StorageOptions): Promise<StorageService> {
  const { port, readOnly = false, log, now = Date.now, extraHeaders = {} } = options;
  const store = readOnly ? readOnlyBlobs(options.store) : options.store;
  const calls = new SystemCalls(port);
  const signer = new UrlSigner(options.urlKey);
  const facts = new FileFacts({ calls, caughtUp: options.caughtUp });
  const intakes = new BlobIntakes({ store, bytesMax: options.uploadBytesMax });
  const traffic = new FileTraffic();
  const urls = new UploadUrls({ signer, calls, now });
  const stall = options.uploadStallMs !== undefined && { stallMs: options.uploadStallMs };
  const shared = { urls, calls, store, bytesMax: options.uploadBytesMax, traffic, now, ...stall };
  const uploads = new Uploads({ ...shared, intakes });
  const resumables = await ResumableUploads.open({ ...shared, folder: options.spoolDir });
  if (options.shared !== true) await resumables.load();
  const removals = new Removals({ calls, store, keepMs: options.keepDeletedMs, now, log });
  const sweeper = readOnly ? null : createSweeper({
    calls,
    store,
    isPending: (blob) => intakes.isPending(blob) || resumables.isPending(blob),
    removals,
    resumables,
    asideSince: options.asideSince ?? (() => Promise.resolve(null)),
    knowsAll: options.knowsAll ?? (() => true),
    now,
    log,
  });
  const maker = options.thumbnailMaker ?? new ProcessThumbnailMaker();
  const small = new SmallBlobs(store);
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
    recover: () => resumables.load(),
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
