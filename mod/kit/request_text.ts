/** The text of a request's body, within bounds. */
import { isUtf8 } from "node:buffer";
import { ServiceError } from "../errors.ts";
import { httpLimits } from "../limits.ts";

/** Requests of which more has to come before they can be answered. Whoever owns the connections ends those that stall. */
export const bodiesBeingRead: Set<Request> = new Set();

/** Faster than one that looks out for errors: what is no text is found before, in a third of what that takes. */
const utf8 = new TextDecoder();

/**
 * Reads a body of at most `bytesMax` bytes as UTF-8, without its byte order mark. Throws `body_too_large`, before the
 * body is read when its length is announced, and `bad_request` when it breaks off, which is the network's affair or the
 * caller's and no fault of the server, or when its bytes are no text: what would be put in their place nobody has sent.
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
    throw new ServiceError("bad_request", "The request body broke off", { cause: error });
  } finally {
    bodiesBeingRead.delete(request);
  }
}

/** Reads a body of whatever length, counted as it arrives. */
async function counted(request: Request, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop cancels the body: nothing more of it is read.
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
