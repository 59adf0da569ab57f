/** The answer with one file: whole, compressed where the client takes that, a part of it, or that the client's copy is good. */
import { getMimeType } from "hono/mime";
import { type ByteRange, parseByteRange } from "../../kit/byte_range.ts";
import type { CompressedCopies } from "./compressed_copies.ts";
import { acceptedCodings, type Coding, isCompressible } from "./content_coding.ts";

export interface FoundFile {
  readonly path: string;
  readonly info: Deno.FileInfo;
}

interface Headed extends FoundFile {
  readonly request: Request;
  readonly copies: CompressedCopies;
  /** Of the file as it is. */
  readonly etag: string;
  readonly headers: Headers;
}

/** 200, 206, 304 or 416. `kept`: whether its path never holds anything else. */
export async function respondWithFile(
  request: Request,
  { path, info, copies, kept }: FoundFile & { readonly copies: CompressedCopies; readonly kept: boolean },
): Promise<Response> {
  const modifiedMs = Math.floor((info.mtime?.getTime() ?? 0) / 1000) * 1000;
  const etag = `"${info.size.toString(16)}-${(info.mtime?.getTime() ?? 0).toString(16)}"`;
  const type = getMimeType(path) ?? "application/octet-stream";
  const codings = isCompressible(type) ? acceptedCodings(request.headers.get("accept-encoding")) : [];
  const headers = new Headers({
    "Accept-Ranges": "bytes",
    "Cache-Control": kept ? "public, max-age=31536000, immutable" : "no-cache",
    "Content-Type": type,
    "ETag": etag,
    "Last-Modified": new Date(modifiedMs).toUTCString(),
    ...isCompressible(type) && { "Vary": "Accept-Encoding" },
  });
  const fresh = freshCopy(request, {
    etags: [...codings.map((coding) => etagOf(etag, coding)), etag],
    modifiedMs,
  });
  if (fresh !== null) {
    headers.delete("Content-Type");
    headers.set("ETag", fresh);
    return new Response(null, { status: 304, headers });
  }
  const range = rangeMayApply(request, { etag, modifiedMs })
    ? parseByteRange(request.headers.get("range"), info.size)
    : null;
  const headed = { request, path, info, copies, etag, headers };
  return range === null && codings[0] !== undefined && await compressed(headed, codings[0]) ||
    await plain(headed, range);
}

/** The whole file, compressed; `null` where it is not worth it, or there is too much to compress. */
async function compressed(
  { request, path, info, copies, etag, headers }: Headed,
  coding: Coding,
): Promise<Response | null> {
  const original = {
    key: `${etag} ${path}`,
    size: info.size,
    read: async () => (await Deno.open(path)).readable,
  };
  const copy = await copies.get(original, coding);
  if (copy === null) return null;
  headers.set("ETag", etagOf(etag, coding));
  headers.set("Content-Encoding", coding);
  headers.set("Content-Length", String(copy.length));
  return new Response(request.method === "HEAD" ? null : copy, { headers });
}

/** The file as it is, or a part of it: parts are always of the file itself. */
async function plain(
  { request, path, info, headers }: Headed,
  range: ByteRange | "unsatisfiable" | null,
): Promise<Response> {
  if (range === "unsatisfiable") {
    headers.set("Content-Range", `bytes */${info.size}`);
    return new Response(null, { status: 416, headers });
  }
  const { start, end } = range ?? { start: 0, end: info.size - 1 };
  headers.set("Content-Length", String(end - start + 1));
  if (range !== null) headers.set("Content-Range", `bytes ${start}-${end}/${info.size}`);
  const status = range === null ? 200 : 206;
  if (request.method === "HEAD" || info.size === 0) return new Response(null, { status, headers });
  return new Response(await readPart(path, { start, end }), { status, headers });
}

/** The same file compressed is another representation, and has an ETag of its own. */
function etagOf(etag: string, coding: Coding): string {
  return `${etag.slice(0, -1)}-${coding}"`;
}

interface Validators {
  readonly etag: string;
  readonly modifiedMs: number;
}

/** The ETag of the copy that the client has and may go on using; of those it could be sent, any will do. */
function freshCopy(
  request: Request,
  { etags, modifiedMs }: { readonly etags: readonly string[]; readonly modifiedMs: number },
): string | null {
  const noneMatch = request.headers.get("if-none-match");
  if (noneMatch !== null) {
    const given = noneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
    return etags.find((etag) => given.includes(etag) || given.includes("*")) ?? null;
  }
  const since = Date.parse(request.headers.get("if-modified-since") ?? "");
  return since >= modifiedMs ? etags[0] ?? null : null;
}

/** With `If-Range` a part is sent only when the client's copy is still the current one. */
function rangeMayApply(request: Request, { etag, modifiedMs }: Validators): boolean {
  if (request.method !== "GET") return false;
  const ifRange = request.headers.get("if-range");
  return ifRange === null || ifRange === etag || Date.parse(ifRange) === modifiedMs;
}

/** Streams the bytes from `start` to `end`. The file closes when they have been read or nobody wants them any more. */
async function readPart(
  path: string,
  { start, end }: { start: number; end: number },
): Promise<ReadableStream> {
  const file = await Deno.open(path);
  try {
    if (start > 0) await file.seek(start, Deno.SeekMode.Start);
  } catch (error) {
    file.close();
    throw error;
  }
  let left = end - start + 1;
  return file.readable.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const part = chunk.subarray(0, left);
        left -= part.length;
        if (part.length > 0) controller.enqueue(part);
        if (left === 0) controller.terminate();
      },
    }),
  );
}
