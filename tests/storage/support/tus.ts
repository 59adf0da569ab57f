/** Requests of the tus protocol to a test storage or a server. */
import { join } from "node:path";
import type { TestStorage } from "./test_storage.ts";

/** Sends a request to a path or URL. */
export type Send = (path: string, init: RequestInit) => Promise<Response>;

export const chunkType = "application/offset+octet-stream";

/** The endpoint of an upload URL. */
export function resumable(uploadUrl: string): string {
  return uploadUrl.replace("/upload?", "/resumable?");
}

/** An `Upload-Metadata` header. */
export function metadata(pairs: Readonly<Record<string, string>>): string {
  return Object.entries(pairs).map(([key, value]) => `${key} ${new TextEncoder().encode(value).toBase64()}`)
    .join(",");
}

export class TusClient {
  readonly #send: Send;
  readonly #headers: Record<string, string>;

  /** `headers` are sent with every request. */
  constructor(send: Send, headers: Readonly<Record<string, string>> = {}) {
    this.#send = send;
    this.#headers = { "Tus-Resumable": "1.0.0", ...headers };
  }

  create(uploadUrl: string, headers: Record<string, string>, body?: BodyInit): Promise<Response> {
    return this.#request("POST", resumable(uploadUrl), headers, body);
  }

  /** Creates an upload of this many bytes and returns its address. */
  async begin(uploadUrl: string, bytes: number, headers: Record<string, string> = {}): Promise<string> {
    const response = await this.create(uploadUrl, { "Upload-Length": String(bytes), ...headers });
    const location = response.headers.get("location");
    if (response.status !== 201 || location === null) {
      throw new Error(`${response.status} ${await response.text()}`);
    }
    await response.body?.cancel();
    return location;
  }

  head(location: string): Promise<Response> {
    return this.#request("HEAD", location);
  }

  patch(
    location: string,
    { offset, body, headers = {} }: {
      readonly offset: number;
      readonly body: BodyInit;
      readonly headers?: Record<string, string>;
    },
  ): Promise<Response> {
    const own = { "Content-Type": chunkType, "Upload-Offset": String(offset), ...headers };
    return this.#request("PATCH", location, own, body);
  }

  remove(location: string): Promise<Response> {
    return this.#request("DELETE", location);
  }

  #request(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body: BodyInit | null = null,
  ): Promise<Response> {
    return this.#send(path, { method, body, headers: { ...this.#headers, ...headers } });
  }
}

/** A client of a test storage. */
export const clientOf = (storage: TestStorage): TusClient => new TusClient(storage.request);

/** Names in the folder of unfinished uploads. */
export function spooled(storage: TestStorage): string[] {
  return [...Deno.readDirSync(join(storage.dir, "storage", "resumable"))].map(({ name }) => name);
}

/** Offset of an upload, or the error status. */
export async function offsetOf(tus: TusClient, location: string): Promise<string | null> {
  const response = await tus.head(location);
  return response.status === 200 ? response.headers.get("upload-offset") : String(response.status);
}
