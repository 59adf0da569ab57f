/** Reads request bodies of bounded length, as strings or as JSON that matches a schema. */
import { isUtf8 } from "node:buffer";
import type { z } from "zod";
import { ServiceError } from "../errors.ts";
import { httpLimits } from "../limits.ts";

/** Requests whose body is still arriving. The owner of the connections closes those that stall. */
export const bodiesBeingRead: Set<Request> = new Set();

/** Not fatal, which is faster: `isUtf8` checks the bytes in a third of the time. */
const utf8 = new TextDecoder();

/** Reads UTF-8 of at most `bytesMax`, without a byte order mark. Throws `body_too_large` and `bad_request`. */
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

export interface JsonBodyOptions {
  readonly bytesMax: number;
  /** Value of an empty body. Without it an empty body is invalid. */
  readonly whenEmpty?: unknown;
}

/** Parses JSON of any type; safe, as credentials are in bodies and headers. Throws `body_too_large`, `bad_request`. */
export async function readJsonBody<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
  { bytesMax, whenEmpty }: JsonBodyOptions,
): Promise<z.infer<Schema>> {
  const text = await requestText(request, bytesMax);
  const parsed = schema.safeParse(text === "" && whenEmpty !== undefined ? whenEmpty : parseJson(text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ServiceError(
    "bad_request",
    `${issue?.path.join(".") || "body"}: ${issue?.message ?? "Invalid input"}`,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError("bad_request", "The request body is not valid JSON");
  }
}
