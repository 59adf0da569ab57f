/** The one-shot function calls: `POST /api/query`, `/api/mutation`, `/api/action` (contract: HTTP function calls). */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { MethodNotAllowedError, ServiceError } from "../errors.ts";
import type { FunctionCall, FunctionHost } from "../functions/host_port.ts";
import { anonymous, type Identity } from "../functions/identity.ts";
import { errorStatus, failed, type Outcome, publicError } from "../functions/outcome.ts";
import { requestText } from "../kit/request_text.ts";
import { httpLimits } from "../limits.ts";
import { argsObjectSchema } from "../protocol/client_messages.ts";
import type { Authenticator } from "./authenticator.ts";
import type { Hub } from "./hub.ts";
import { refuseCall } from "./refuse_call.ts";
import { logLinesText } from "./transition_frame.ts";

export interface HttpCallsOptions {
  readonly hub: Hub;
  readonly host: FunctionHost;
  readonly authenticator: Authenticator;
  /** Shows real error texts and log lines. */
  readonly dev: boolean;
}

const callBodySchema = z.object({ path: z.string(), args: argsObjectSchema });

const BEARER = /^Bearer +([^\s]+) *$/i;

/**
 * Routes of the three calls. Errors of the service itself (a token that is not valid, a body over the limit) are thrown as
 * `ServiceError` for the router to answer.
 */
export function httpCalls({ hub, host, authenticator, dev }: HttpCallsOptions): Hono {
  const app = new Hono();
  app.post("/api/query", async (c) => {
    const call = await readCall(c, authenticator);
    const outcome = "refused" in call ? call.refused : await hub.query(call);
    return answer(outcome, { dev, rest: "" });
  });

  app.post("/api/mutation", async (c) => {
    const call = await readCall(c, authenticator);
    if ("refused" in call) return answer(call.refused, { dev, rest: "" });
    const { outcome, ts } = await host.mutate(call);
    return answer(outcome, { dev, rest: `,"ts":${ts}` });
  });

  app.post("/api/action", async (c) => {
    const call = await readCall(c, authenticator);
    const outcome = "refused" in call ? call.refused : await host.act(call);
    return answer(outcome, { dev, rest: "" });
  });

  app.all("/api/:call{query|mutation|action}", () => {
    throw new MethodNotAllowedError("POST, OPTIONS");
  });
  return app;
}

/** The call a request makes, or the outcome of one that cannot be made. */
async function readCall(
  c: Context,
  authenticator: Authenticator,
): Promise<FunctionCall | { readonly refused: Outcome }> {
  const identity = await caller(c.req.header("authorization"), authenticator);
  const text = await requestText(c.req.raw, httpLimits.callBodyBytesMax);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message.toWellFormed() : "it cannot be parsed";
    return { refused: failed("args", `The request body is not JSON: ${reason}`) };
  }
  const parsed = callBodySchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const at = issue === undefined || issue.path.length === 0 ? "body" : issue.path.join(".");
    return { refused: failed("args", `The request is not a call: ${at}: ${issue?.message ?? "invalid"}`) };
  }
  const call = { udfPath: parsed.data.path, args: parsed.data.args, identity, origin: "client" } as const;
  const refused = refuseCall(call);
  return refused === null ? call : { refused };
}

/** Whose call it is. A header that names nobody is refused: a call with it is never anonymous. */
async function caller(header: string | undefined, authenticator: Authenticator): Promise<Identity> {
  if (header === undefined) return anonymous;
  const token = BEARER.exec(header)?.[1];
  if (token === undefined) throw new ServiceError("invalid_token");
  const verification = await authenticator.verify(token);
  if (!verification.ok) {
    throw new ServiceError("invalid_token", `The access token is not valid: ${verification.error}`);
  }
  return verification.identity;
}

/** `rest` is what follows the value of a success. */
function answer(outcome: Outcome, { dev, rest }: { readonly dev: boolean; readonly rest: string }): Response {
  const logLines = logLinesText(outcome.logLines, dev);
  if (outcome.ok) {
    return json(200, `{"status":"success","value":${outcome.value}${rest},"logLines":${logLines}}`);
  }
  const { errorMessage, errorData } = publicError(outcome.error, { dev });
  return json(
    errorStatus(outcome.error),
    `{"status":"error","errorMessage":${JSON.stringify(errorMessage)},"errorData":${
      JSON.stringify(errorData)
    },"logLines":${logLines}}`,
  );
}

function json(status: number, body: string): Response {
  return new Response(body, { status, headers: { "Content-Type": "application/json" } });
}
