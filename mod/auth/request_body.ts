/** The JSON bodies of the auth endpoints. */
import type { Context } from "hono";
import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { requestText } from "../kit/request_text.ts";
import { authLimits } from "../limits.ts";

/** A code or link from a mail. */
const proofFields = {
  token: z.string().optional(),
  email: z.string().optional(),
  code: z.string().optional(),
};

const password = z.string();
const email = z.string();
const redirectTo = z.string().optional();

/** One schema an endpoint; fields that are not named are ignored. */
export const bodies = {
  signUp: z.object({ email, password, name: z.string().optional() }),
  signIn: z.object({ email, password }),
  refresh: z.object({
    refreshToken: z.string(),
    attemptId: z.string().min(authLimits.attemptIdCharsMin).max(authLimits.attemptIdCharsMax).optional(),
  }),
  signOut: z.object({ refreshToken: z.string().optional() }),
  mail: z.object({ email, redirectTo }),
  proof: z.object(proofFields),
  reset: z.object({ ...proofFields, password }),
  setup: z.object({ token: z.string(), email, password }),
};

/** A request's body, checked; one without a content type is taken for JSON. Throws `unsupported_media_type`, `body_too_large` and `bad_request`. */
export async function readBody<Schema extends z.ZodType>(
  c: Context,
  schema: Schema,
): Promise<z.infer<Schema>> {
  const type = c.req.header("content-type") ?? "";
  if (type !== "" && !/^application\/json\s*(?:;|$)/i.test(type)) {
    throw new ServiceError("unsupported_media_type");
  }
  const parsed = schema.safeParse(parseJson(await requestText(c.req.raw, authLimits.bodyBytesMax)));
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
