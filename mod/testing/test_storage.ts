/** File storage of a test server: the real implementation in a temporary folder, reached without a port. */
import { join } from "node:path";
import { Hono } from "hono";
import { FunctionError } from "../client/mod.ts";
import { ServiceError } from "../errors.ts";
import type { CallPort } from "../functions/system_calls.ts";
import { errorResponse } from "../kit/error_response.ts";
import { storageLimits } from "../storage/limits.ts";
import { createStorage, openBlobs, type StorageService } from "../storage/mod.ts";
import { testStorageSettings } from "./load_test_app.ts";
import type { UploadOptions } from "./test_types.ts";

export interface TestStorageOptions {
  /** Folder of the test server. */
  readonly folder: string;
  readonly port: CallPort;
  readonly now: () => number;
  /** Default: as in the server. */
  readonly uploadBytesMax?: number | undefined;
}

const PATH = "/api/storage";

export class TestStorage implements AsyncDisposable {
  readonly service: StorageService;
  readonly #routes: Hono;

  private constructor(service: StorageService) {
    this.service = service;
    this.#routes = new Hono().route(PATH, service.completeRoutes).route(PATH, service.routes);
    this.#routes.notFound(() => errorResponse(new ServiceError("not_found")));
    this.#routes.onError((error) => {
      if (error instanceof ServiceError) return errorResponse(error);
      throw error;
    });
  }

  static async open(
    { folder, port, now, uploadBytesMax = storageLimits.uploadBytesMax }: TestStorageOptions,
  ): Promise<TestStorage> {
    const { urlKey, baseUrl } = testStorageSettings;
    let requests = 0;
    const service = await createStorage({
      urlKey: Uint8Array.fromBase64(urlKey, { alphabet: "base64url" }),
      baseUrl,
      port,
      store: await openBlobs({ kind: "folder", path: join(folder, "storage") }),
      spoolDir: join(folder, "storage", "resumable"),
      uploadBytesMax,
      private: false,
      thumbnailSizes: null,
      keepDeletedMs: 0,
      // Time is frozen, so a rate limit would never refill: give each request its own client address.
      clientOf: () => `test client ${++requests}`,
      log: () => {},
      now,
    });
    return new TestStorage(service);
  }

  /** Whether a path belongs to file storage. */
  serves(pathname: string): boolean {
    return pathname.startsWith(`${PATH}/`);
  }

  async fetch(request: Request): Promise<Response> {
    return await this.#routes.fetch(request);
  }

  /** Uploads a file as a browser does. Resolves to its id. Rejects with a `FunctionError` with the code of the response. */
  async upload(
    url: string,
    contents: Blob,
    { name = contents instanceof File ? contents.name : undefined, contentType = contents.type }:
      UploadOptions,
  ): Promise<string> {
    const target = new URL(url, testStorageSettings.baseUrl);
    if (name !== undefined) target.searchParams.set("filename", name);
    const headers = new Headers();
    if (contentType !== "") headers.set("Content-Type", contentType);
    const response = await this.fetch(
      new Request(target, { method: "POST", headers, body: await contents.bytes() }),
    );
    const answer = await response.json();
    if (response.ok) return answer.storageId;
    const { errorMessage, errorData } = answer;
    throw new FunctionError(errorMessage, { udfPath: target.pathname, errorData, logLines: [] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
  }
}
