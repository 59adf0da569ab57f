/** File storage as the server wires it, on the real engine in this process, with a controlled clock and folder. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Hono } from "hono";
import { ServiceError } from "../../../mod/errors.ts";
import type { FunctionCall } from "../../../mod/functions/host_port.ts";
import { anonymous, type Identity } from "../../../mod/functions/identity.ts";
import { assembleApp } from "../../../mod/functions/isolate/app/loader.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";
import { action, defineSchema, defineTable, id, mutation, query } from "../../../mod/functions/api/mod.ts";
import { errorResponse } from "../../../mod/kit/error_response.ts";
import { configureStorage } from "../../../mod/storage/isolate_functions/ctx.ts";
import { storageModules } from "../../../mod/storage/isolate_functions/mod.ts";
import { type BlobStore, createStorage, openBlobs, type StorageService } from "../../../mod/storage/mod.ts";
import type { ThumbnailMaker } from "../../../mod/storage/thumbnails/maker.ts";
import { InProcessHost } from "../../../mod/testing/in_process_host.ts";

export interface TestStorageOptions {
  readonly uploadBytesMax?: number;
  readonly private?: boolean;
  readonly keepDeletedMs?: number;
  readonly databaseReplacedAt?: () => Promise<number | null>;
  readonly knowsAll?: () => boolean;
  readonly baseUrl?: string;
  readonly uploadStallMs?: number;
  readonly thumbnailSizes?: readonly string[];
  readonly thumbnailMaker?: ThumbnailMaker;
  /** Wraps the blob store. */
  readonly wrapStore?: (store: BlobStore) => BlobStore;
  /** Data folder of an earlier server; a new one by default. */
  readonly dir?: string;
}

export interface UploadOptions {
  readonly type?: string | null;
  readonly name?: string;
  readonly from?: string;
}

export interface TestStorage extends AsyncDisposable {
  readonly service: StorageService;
  readonly host: InProcessHost;
  readonly dir: string;
  readonly logged: string[];
  /** Milliseconds; starts at a fixed instant. */
  readonly clock: { now: number };
  /** Calls a function; throws with the error's text. */
  call(udfPath: string, args?: Record<string, unknown>, identity?: Identity): Promise<unknown>;
  request(path: string, init?: RequestInit): Promise<Response>;
  /** Path of a new upload URL. */
  uploadUrl(identity?: Identity): Promise<string>;
  post(url: string, body: BodyInit | null, options?: UploadOptions): Promise<Response>;
  /** Uploads and returns the file's ID. */
  upload(body: BodyInit, options?: UploadOptions): Promise<string>;
  /** Stored documents of a table. */
  rows(table: string): Promise<Record<string, unknown>[]>;
  /** Names of all blobs in the folder. */
  blobs(): Promise<string[]>;
}

/** Address of the server under test. */
const origin = "http://localhost";

/** Key of URL signatures. */
export const urlKey: Uint8Array<ArrayBuffer> = new Uint8Array(32).fill(7);

/** A table of documents that reference files. */
const schema = defineSchema({ albums: defineTable({ cover: id("_storage") }) });

/** App functions on files. */
const app = {
  name: mutation((ctx, { id }: Record<string, unknown>) => ctx.db.insert("albums", { cover: id as string })),
  generate: mutation((ctx) => ctx.storage.generateUploadUrl()),
  generateAndFail: mutation(async (ctx) => {
    await ctx.storage.generateUploadUrl();
    throw new Error("no");
  }),
  url: query((ctx, { id }: Record<string, unknown>) => ctx.storage.getUrl(id as string)),
  signedUrl: query((ctx, { id, ttlSeconds }: Record<string, unknown>) =>
    ctx.storage.getSignedUrl(id as string, { ttlSeconds: ttlSeconds as number })
  ),
  metadata: query((ctx, { id }: Record<string, unknown>) => ctx.storage.getMetadata(id as string)),
  remove: mutation((ctx, { id }: Record<string, unknown>) => ctx.storage.delete(id as string)),
  removeAndFail: mutation(async (ctx, { id }: Record<string, unknown>) => {
    await ctx.storage.delete(id as string);
    throw new Error("no");
  }),
  actGenerate: action((ctx) => ctx.storage.generateUploadUrl()),
  actStore: action((ctx, { bytes, contentType }: Record<string, unknown>) =>
    ctx.storage.store(
      new Blob([new Uint8Array(bytes as number)]),
      contentType === undefined ? {} : { contentType: contentType as string },
    )
  ),
  actCopy: action(async (ctx, { id, name }: Record<string, unknown>) => {
    const blob = await ctx.storage.get(id as string);
    return blob === null ? null : await ctx.storage.store(blob, { name: name as string });
  }),
};

/** Access to tables that apps cannot read. */
const lookModule = {
  path: "_test" as const,
  tables: {},
  functions: {
    rows: query((ctx, { table }: Record<string, unknown>) => ctx.db.query(table as string).collect()),
  },
};

/** Starts storage on a folder. */
export async function startTestStorage(options: TestStorageOptions = {}): Promise<TestStorage> {
  const clock = { now: Date.UTC(2030, 0, 1) };
  const dir = options.dir ?? await Deno.makeTempDir();
  const logged: string[] = [];
  configureStorage({ urlKey: urlKey.toBase64({ alphabet: "base64url" }), baseUrl: options.baseUrl ?? "" });
  const modules = [
    { name: "files.ts", modulePath: "files", exports: app },
    { name: "schema.ts", modulePath: "schema", exports: { default: schema } },
  ];
  const loaded = assembleApp(modules, { systemModules: [...storageModules, lookModule], named: [] });
  const host = new InProcessHost({
    app: loaded,
    functionsUrl: "",
    databasePath: join(dir, "data.db"),
    now: () => clock.now,
    env: {},
  });
  const runQuery = (call: FunctionCall) => {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    host.startQueryBatch([call], (_, { outcome }) => resolve(outcome));
    return promise;
  };
  host.serveQueries(runQuery);
  const folder = await openBlobs({ kind: "folder", path: join(dir, "storage") });
  const service = await createStorage({
    urlKey,
    port: { mutate: (call) => host.mutate(call), query: runQuery },
    store: options.wrapStore?.(folder) ?? folder,
    spoolDir: join(dir, "storage", "resumable"),
    baseUrl: options.baseUrl ?? "",
    uploadBytesMax: options.uploadBytesMax ?? 1_000_000,
    private: options.private ?? false,
    keepDeletedMs: options.keepDeletedMs ?? 0,
    ...(options.databaseReplacedAt && { databaseReplacedAt: options.databaseReplacedAt }),
    ...(options.knowsAll && { knowsAll: options.knowsAll }),
    thumbnailSizes: options.thumbnailSizes ?? null,
    ...(options.thumbnailMaker !== undefined && { thumbnailMaker: options.thumbnailMaker }),
    clientOf: (c) => c.req.header("x-test-client") ?? "203.0.113.1",
    log: (level, message) => logged.push(`${level} ${message}`),
    now: () => clock.now,
    ...(options.uploadStallMs !== undefined && { uploadStallMs: options.uploadStallMs }),
  });
  host.serveCtxActions(service.actions);
  host.onCommits((entries) => service.applyCommits(entries));
  const router = new Hono().route("/api/storage", service.completeRoutes).route(
    "/api/storage",
    service.routes,
  );
  router.notFound(() => errorResponse(new ServiceError("not_found")));
  router.onError((error) => {
    if (error instanceof ServiceError) return errorResponse(error);
    logged.push(`error ${error.message}`);
    return errorResponse(new ServiceError("internal"));
  });
  let clients = 0;

  async function call(udfPath: string, args = {}, identity = anonymous): Promise<unknown> {
    const request = { udfPath, args, identity, origin: "client" } as const;
    const kind = host.info(udfPath)?.kind;
    const outcome = kind === "mutation"
      ? (await host.mutate(request)).outcome
      : kind === "action"
      ? await host.act(request)
      : await runQuery(request);
    if (!outcome.ok) throw new Error(outcome.error.message);
    return JSON.parse(outcome.value);
  }
  // As in the server: the fast path runs before the router.
  const request: TestStorage["request"] = async (path, init) =>
    (init?.body === undefined ? service.readAtOnce(new Request(new URL(path, origin), init)) : null) ??
      await router.request(path, init);
  const uploadUrl = async (identity = anonymous) => String(await call("files:generate", {}, identity));
  const post: TestStorage["post"] = (url, body, { type = null, name, from } = {}) =>
    request(name === undefined ? url : `${url}&filename=${encodeURIComponent(name)}`, {
      method: "POST",
      // A string body would set a content type.
      body: typeof body === "string" ? new TextEncoder().encode(body) : body,
      headers: {
        // One client each, unless the rate limit is tested.
        "X-Test-Client": from ?? `client ${++clients}`,
        ...(type !== null && { "Content-Type": type }),
      },
    });
  return {
    service,
    host,
    dir,
    logged,
    clock,
    call,
    request,
    uploadUrl,
    post,
    async upload(body, uploadOptions) {
      const response = await post(await uploadUrl(), body, uploadOptions);
      const answer = await response.json();
      assert.equal(response.status, 200, JSON.stringify(answer));
      return answer.storageId;
    },
    async rows(table) {
      const value = await call("_test:rows", { table });
      return value as Record<string, unknown>[];
    },
    async blobs() {
      const names: string[] = [];
      for await (const shard of Deno.readDir(join(dir, "storage"))) {
        if (!/^[0-9a-f]{2}$/.test(shard.name)) continue;
        for await (const { name } of Deno.readDir(join(dir, "storage", shard.name))) names.push(name);
      }
      return names.sort();
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      host[Symbol.dispose]();
      if (options.dir === undefined) await Deno.remove(dir, { recursive: true });
    },
  };
}

/** Status and code of a response. */
export async function errorOf(response: Response): Promise<string> {
  const body = await response.json();
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.equal(body.status, "error");
  assert.equal(body.errorData.data, null);
  return `${response.status} ${body.errorData.code}`;
}
