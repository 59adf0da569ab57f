/** A request's body as a string of bounded length. */
import { isUtf8 } from "node:buffer";
import { ServiceError } from "../errors.ts";
import { httpLimits } from "../limits.ts";

/** Requests whose body is still arriving. The owner of the connections closes those that stall. */
export const bodiesBeingRead: Set<Request> = new Set();

/** Not fatal, which is faster: `isUtf8` checks the bytes in a third of the time. */
const utf8 = new TextDecoder();

/**
 * Reads a body of at most `bytesMax` bytes as UTF-8 without its byte order mark. Throws `body_too_large`, before
 * reading if the length is announced, and `bad_request` if the body is incomplete or not UTF-8.
 */
export async function requestText(request: Request, bytesMax: number): Promise<string> {
  const announced = request.headers.has("transfer-encoding") ? null : request.headers.get("content-length");
  if (Number(announced) > bytesMax) throw new ServiceError("body_too_large");
  const readWhole = announced !== null && Number(announced) <= httpLimits.bodyReadWholeBytesMax;
  bodiesBeingRead.add(request);
  try {
    return readWhole ? wholeText(await request.bytes()) : await counted(request, bytesMax);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("bad_request", "The request body was incomplete", { cause: error });
  } finally {
    bodiesBeingRead.delete(request);
  }
}

/** Reads a body of unknown length and counts its bytes. */
async function counted(request: Request, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop cancels the body.
    if (bytes > bytesMax) throw new ServiceError("body_too_large");
    text += decoded(decoder, chunk, { stream: true });
  }
  return text + decoded(decoder);
}

function wholeText(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new ServiceError("bad_request", "The request body is not UTF-8");
  return utf8.decode(bytes);
}

function decoded(decoder: TextDecoder, ...bytes: Parameters<TextDecoder["decode"]>): string {
  try {
    return decoder.decode(...bytes);
  } catch (error) {
    throw new ServiceError("bad_request", "The request body is not UTF-8", { cause: error });
  }
}
