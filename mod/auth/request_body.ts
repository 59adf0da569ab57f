/** JSON bodies of the auth endpoints. */
import type { Context } from "hono";
import { z } from "zod";
import { readJsonBody } from "../kit/request_body.ts";
import { authLimits } from "./limits.ts";
import { APP_STATE } from "./redirects.ts";

/** A code or link from a mail. */
const proofFields = {
  token: z.string().optional(),
  email: z.string().optional(),
  code: z.string().optional(),
};

const password = z.string();
const email = z.string();
const redirectTo = z.string().optional();

/** One schema for each endpoint; unknown fields are ignored. */
export const bodies = {
  signUp: z.object({ email, password, name: z.string().optional() }),
  signIn: z.object({ email, password }),
  refresh: z.object({
    refreshToken: z.string(),
    attemptId: z.string().min(authLimits.attemptIdCharsMin).max(authLimits.attemptIdCharsMax).optional(),
  }),
  signOut: z.object({ refreshToken: z.string().optional() }),
  mail: z.object({ email, redirectTo }),
  magicMail: z.object({ email, redirectTo, appState: z.string().regex(APP_STATE).optional() }),
  proof: z.object(proofFields),
  reset: z.object({ ...proofFields, password }),
  setup: z.object({ token: z.string(), email, password }),
};

/** Parses the body of an auth endpoint. Throws `body_too_large` and `bad_request`. */
export function readBody<Schema extends z.ZodType>(c: Context, schema: Schema): Promise<z.infer<Schema>> {
  return readJsonBody(c.req.raw, schema, { bytesMax: authLimits.bodyBytesMax });
}
