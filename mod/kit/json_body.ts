/** The JSON body of a request, checked against a schema. */
import type { z } from "zod";
import { ServiceError } from "../errors.ts";
import { requestText } from "./request_text.ts";

export interface JsonBodyOptions {
  /** Longest body. */
  readonly bytesMax: number;
  /** What a body without a byte stands for; without this it is not valid. */
  readonly whenEmpty?: unknown;
}

/**
 * A request's body, whatever type it says it has: `fetch` calls a text `text/plain` unless it is told otherwise, and as
 * credentials are in bodies and headers alone, the type keeps nobody away. Throws `body_too_large` and `bad_request`.
 */
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
