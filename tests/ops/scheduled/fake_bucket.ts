/** The part of an S3 service that backups use, in memory, with controllable failures. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { BucketLocation } from "../../../mod/kit/locations/object_store.ts";

export interface FakeRequest {
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
}

export interface FakeUpload {
  readonly key: string;
  readonly parts: Uint8Array<ArrayBuffer>[];
  /** Absent if the service does not return it. */
  readonly begunAt?: number;
}

const xml = (body: string, status = 200) =>
  new Response(`<?xml version="1.0"?>${body}`, { status, headers: { "Content-Type": "application/xml" } });

export class FakeBucket implements AsyncDisposable {
  readonly objects = new Map<string, Uint8Array<ArrayBuffer>>();
  /** Parts of started uploads, by upload. */
  readonly uploads = new Map<string, FakeUpload>();
  readonly requests: FakeRequest[] = [];
  /** Overrides a response; `null` lets a request pass. */
  fault: (request: FakeRequest) => Response | Promise<Response> | null = () => null;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor() {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      (request) => this.#answer(request),
    );
  }

  /** Default: no prefix. */
  location(prefix = ""): BucketLocation {
    const endpoint = `http://127.0.0.1:${this.#server.addr.port}`;
    return {
      bucket: "files",
      prefix,
      region: "us-east-1",
      endpoint,
      accessKeyId: "id",
      secretAccessKey: "key",
    };
  }

  refusal(code: string, status: number): Response {
    return xml(`<Error><Code>${code}</Code><Message>Not for you</Message></Error>`, status);
  }

  /** Creates an object from the parts of an upload; `false` if the upload does not exist. */
  complete(upload: string): boolean {
    const begun = this.uploads.get(upload);
    if (begun === undefined) return false;
    this.uploads.delete(upload);
    this.objects.set(begun.key, new Uint8Array(Buffer.concat(begun.parts)));
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const key = decodeURIComponent(url.pathname.replace(/^\/files\/?/, ""));
    const bytes = await request.bytes();
    const seen = { method: request.method, key, query: url.searchParams, headers: request.headers };
    this.requests.push(seen);
    return await this.fault(seen) ?? this.#serve(seen, bytes);
  }

  #serve({ method, key, query, headers }: FakeRequest, bytes: Uint8Array<ArrayBuffer>): Response {
    const upload = query.get("uploadId") ?? "";
    switch (method) {
      case "GET":
        if (key !== "") return this.#object(key, headers);
        if (query.has("uploads")) return this.#listUploads(query.get("prefix") ?? "");
        return this.#list(query.get("prefix") ?? "");
      case "HEAD": {
        const object = this.objects.get(key);
        return object === undefined
          ? new Response(null, { status: 404 })
          : new Response(null, { headers: { "Content-Length": String(object.length) } });
      }
      case "PUT":
        if (upload === "") this.objects.set(key, bytes);
        else this.uploads.get(upload)?.parts.push(bytes);
        return new Response(null, {
          headers: { ETag: `"${createHash("md5").update(bytes).digest("hex")}"` },
        });
      case "POST": {
        if (query.has("uploads")) return this.#begin(key);
        if (!this.complete(upload)) return this.refusal("NoSuchUpload", 404);
        return xml("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
      }
      case "DELETE":
        if (upload === "") this.objects.delete(key);
        else this.uploads.delete(upload);
        return new Response(null, { status: 204 });
      default:
        return new Response(null, { status: 405 });
    }
  }

  #begin(key: string): Response {
    const id = crypto.randomUUID();
    this.uploads.set(id, { key, parts: [] });
    return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
  }

  #object(key: string, headers: Headers): Response {
    const object = this.objects.get(key);
    if (object === undefined) return this.refusal("NoSuchKey", 404);
    const [, from, to] = headers.get("range")?.match(/^bytes=(\d+)-(\d+)$/) ?? [];
    const part = from === undefined ? object : object.slice(Number(from), Number(to) + 1);
    return new Response(part, { status: from === undefined ? 200 : 206, headers: { ETag: '"one"' } });
  }

  #list(prefix: string): Response {
    const found = [...this.objects].filter(([key]) => key.startsWith(prefix)).map(([key, { length }]) =>
      `<Contents><Key>${key}</Key><Size>${length}</Size><LastModified>2030-01-01T00:00:00.000Z</LastModified></Contents>`
    );
    return xml(`<ListBucketResult><IsTruncated>false</IsTruncated>${found.join("")}</ListBucketResult>`);
  }

  #listUploads(prefix: string): Response {
    const uploads = [...this.uploads].filter(([, { key }]) => key.startsWith(prefix));
    const found = uploads.map(([id, { key, begunAt }]) => {
      const initiated = begunAt === undefined
        ? ""
        : `<Initiated>${new Date(begunAt).toISOString()}</Initiated>`;
      return `<Upload><Key>${key}</Key><UploadId>${id}</UploadId>${initiated}</Upload>`;
    });
    return xml(
      `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${
        found.join("")
      }</ListMultipartUploadsResult>`,
    );
  }
}
