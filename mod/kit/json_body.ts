/** The JSON body of a request, validated against a schema. */
import type { z } from "zod";
import { ServiceError } from "../errors.ts";
import { requestText } from "./request_text.ts";

export interface JsonBodyOptions {
  readonly bytesMax: number;
  /** Value of an empty body. Without it an empty body is invalid. */
  readonly whenEmpty?: unknown;
}

/**
 * Parses a request's body and ignores its content type: `fetch` sends strings as `text/plain`. This is safe because
 * credentials are only in bodies and headers. Throws `body_too_large` and `bad_request`.
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
