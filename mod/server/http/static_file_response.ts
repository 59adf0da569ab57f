/** Responses with a static file: whole, compressed, a byte range, or 304. */
import { getMimeType } from "hono/mime";
import { type ByteRange, parseByteRange } from "../../kit/byte_range.ts";
import type { CompressedCopies } from "./compressed_copies.ts";
import { acceptedCodings, type Coding, isCompressible } from "./content_coding.ts";

export interface FoundFile {
  readonly path: string;
  readonly info: Deno.FileInfo;
}

interface PreparedResponse extends FoundFile {
  readonly request: Request;
  readonly copies: CompressedCopies;
  /** Of the uncompressed file. */
  readonly etag: string;
  readonly headers: Headers;
}

/** Responds with 200, 206, 304 or 416. `kept`: the contents at this path never change. */
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

/** Responds with the compressed file; `null` if it should be sent uncompressed. */
async function compressed(
  { request, path, info, copies, etag, headers }: PreparedResponse,
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

/** Responds with the uncompressed file or a range of it. */
async function plain(
  { request, path, info, headers }: PreparedResponse,
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

/** A compressed representation has its own ETag. */
function etagOf(etag: string, coding: Coding): string {
  return `${etag.slice(0, -1)}-${coding}"`;
}

interface Validators {
  readonly etag: string;
  readonly modifiedMs: number;
}

/** ETag of the client's copy if it is still valid in any coding that could be sent. */
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

/** With `If-Range`, a range is sent only if the client's copy is current. */
function rangeMayApply(request: Request, { etag, modifiedMs }: Validators): boolean {
  if (request.method !== "GET") return false;
  const ifRange = request.headers.get("if-range");
  return ifRange === null || ifRange === etag || Date.parse(ifRange) === modifiedMs;
}

/** Streams bytes `start` to `end`. The file is closed at the end or when the stream is canceled. */
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
