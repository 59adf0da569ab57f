/** One-shot function calls over HTTP: `POST /api/query`, `/api/mutation`, `/api/action` (HC). */
import { Hono } from "hono";
import { z } from "zod";
import { MethodNotAllowedError, ServiceError } from "../errors.ts";
import type { CallTrace, RequestSpans } from "../functions/call_trace.ts";
import type { Caller, FunctionCall, FunctionHost, ReplayKey } from "../functions/host_port.ts";
import { anonymous, type Identity } from "../functions/identity.ts";
import {
  errorIdOf,
  errorStatus,
  failed,
  type Outcome,
  publicError,
  serviceErrorOf,
} from "../functions/outcome.ts";
import { failureResponse } from "../kit/error_response.ts";
import type { Log } from "../kit/log.ts";
import { requestPath } from "../kit/http_request.ts";
import { requestText } from "../kit/request_body.ts";
import { httpLimits } from "../limits.ts";
import { argsObjectSchema } from "../protocol/client_messages.ts";
import { type Authenticator, callerOf, guestCaller } from "./authenticator.ts";
import { refuseKey } from "../functions/key_scope.ts";
import type { FunctionKind } from "../protocol/function_reference.ts";
import type { Hub } from "./hub.ts";
import { refuseCall } from "./refuse_call.ts";
import { logLinesText } from "./sockets/transition_frame.ts";

export interface HttpCallsOptions {
  readonly hub: Hub;
  readonly host: FunctionHost;
  readonly authenticator: Authenticator;
  /** Sends full error texts and log lines. */
  readonly dev: boolean;
  /**
   * Headers for browsers, other than the content type. Answers to calls without an `Origin` header, which every POST of a page
   * has, omit them unless the call is named by `Syncline-Request`.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** Returns the client address of a request, behind trusted proxies. */
  readonly addressOf?: (request: Request, info?: Deno.ServeHandlerInfo) => string;
  /** Records spans of the calls. Optional. */
  readonly spans?: RequestSpans;
  readonly log: Log;
}

export interface HttpCalls {
  /** Handles a call without the router, which would take a tenth of a small call's time. `null` for others. Never rejects. */
  readonly handleDirectly: (request: Request, info?: Deno.ServeHandlerInfo) => Promise<Response> | null;
  /** Rejects methods other than POST. */
  readonly routes: Hono;
}

const callBodySchema = z.object({ path: z.string(), args: argsObjectSchema });

/** `<sessionId> <requestId>`: a mutation repeated here or on the session's socket gets the recorded response. */
const requestHeader = "syncline-request";

/** Response header of a masked error: the request id under which the execution log has the details (HC13). */
export const errorIdHeader = "Syncline-Request-Id";

const unnamedText = "The header Syncline-Request must hold a session id and a request id";

const sessionIdSchema = z.guid();

function replayKey(text: string): ReplayKey | null {
  const [, sessionId, id] = /^(\S+) (-?\d{1,16})$/.exec(text) ?? [];
  const requestId = Number(id);
  const parsed = sessionIdSchema.safeParse(sessionId);
  return parsed.success && Number.isSafeInteger(requestId) ? { sessionId: parsed.data, requestId } : null;
}

/** The runtime has a fast path for a string with this header alone. */
const jsonOnly = { "Content-Type": "application/json" } as const;

const BEARER = /^Bearer +([^\s]+) *$/i;

/** Creates the handlers of the three endpoints. */
export function httpCalls(
  { hub, host, authenticator, dev, headers, addressOf = () => "local", spans, log }: HttpCallsOptions,
): HttpCalls {
  // As objects that the runtime has checked once: it copies them in half the time.
  const jsonHeaders = new Headers({ ...headers, "Content-Type": "application/json" });
  const namedHeaders = new Headers(jsonHeaders);
  namedHeaders.set("Syncline-Request", "recognised");
  const respond = async (
    { request, info, trace }: RequestContext,
    kind: FunctionKind,
    run: (call: FunctionCall, headers: Headers) => Promise<Answer>,
  ): Promise<Response> => {
    // Read first: the connection may be gone later.
    const guest = guestCaller(addressOf(request, info));
    const call = await readCall(request, { authenticator, guest, kind, trace });
    const { outcome, rest = "", named = false } = "refused" in call
      ? { outcome: call.refused }
      : await run(call, request.headers);
    const refusal = outcome.ok ? null : serviceErrorOf(outcome.error);
    // An earlier copy of a named request may have been committed, or may still be.
    if (refusal?.code === "unavailable" && named) throw new ServiceError("outcome_unknown");
    if (refusal !== null) throw refusal;
    const [status, body] = answerText(outcome, { dev, rest });
    const isOfPage = request.headers.get("origin") !== null;
    const response = new Response(body, {
      status,
      headers: named ? namedHeaders : isOfPage ? jsonHeaders : jsonOnly,
    });
    const errorId = outcome.ok ? null : errorIdOf(outcome.error);
    if (errorId !== null) response.headers.set(errorIdHeader, errorId);
    return response;
  };
  const calls: ReadonlyMap<string, (context: RequestContext) => Promise<Response>> = new Map([
    [
      "/api/query",
      (context) => respond(context, "query", async (call) => ({ outcome: await hub.query(call) })),
    ],
    ["/api/mutation", (context) =>
      respond(context, "mutation", async (call, headers) => {
        const named = headers.get(requestHeader);
        const replay = named === null ? null : replayKey(named);
        if (named !== null && replay === null) return { outcome: failed("args", unnamedText) };
        const { outcome, ts } = await host.mutate(replay === null ? call : { ...call, replay });
        return { outcome, rest: `,"ts":${ts}`, named: replay !== null };
      })],
    [
      "/api/action",
      (context) => respond(context, "action", async (call) => ({ outcome: await host.act(call) })),
    ],
  ]);
  const routes = new Hono();
  for (const path of calls.keys()) {
    routes.all(path, () => {
      throw new MethodNotAllowedError("POST, OPTIONS");
    });
  }
  return {
    handleDirectly(request, info) {
      if (request.method !== "POST") return null;
      const path = requestPath(request);
      const call = calls.get(path);
      if (call === undefined) return null;
      const span = spans?.start(`POST ${path}`, request.headers.get("traceparent"));
      const response = call({ request, info, trace: span?.trace })
        .catch((error) => failureResponse(error, log, headers));
      return span === undefined ? response : response.then((answered) => {
        span.end(answered.status);
        return answered;
      });
    },
    routes,
  };
}

interface RequestContext {
  readonly request: Request;
  /** Absent for requests made by tests. */
  readonly info: Deno.ServeHandlerInfo | undefined;
  readonly trace: CallTrace | undefined;
}

/** A call's outcome. `rest` is appended after the value of a success. */
interface Answer {
  readonly outcome: Outcome;
  /** Whether the request carried a `Syncline-Request` header. */
  readonly named?: boolean;
  readonly rest?: string;
}

/** Parses the request into a call, or returns the error outcome. */
async function readCall(
  request: Request,
  { authenticator, guest, kind, trace }: {
    readonly authenticator: Authenticator;
    readonly guest: Caller;
    readonly kind: FunctionKind;
    readonly trace: CallTrace | undefined;
  },
): Promise<FunctionCall | { readonly refused: Outcome }> {
  const identity = await caller(request.headers.get("authorization"), { authenticator, client: guest.blame });
  const text = await requestText(request, httpLimits.callBodyBytesMax);
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
  const call = { udfPath: parsed.data.path, args: parsed.data.args, identity, origin: "client" as const };
  const refused = refuseCall(call) ?? refuseKey(identity, kind, call.udfPath);
  return refused === null
    ? { ...call, caller: callerOf(identity, guest), ...(trace && { trace }) }
    : { refused };
}

/** Returns the caller's identity. An invalid header is an error, never an anonymous call. */
async function caller(
  header: string | null,
  { authenticator, client }: { readonly authenticator: Authenticator; readonly client: string },
): Promise<Identity> {
  if (header === null) return anonymous;
  const token = BEARER.exec(header)?.[1];
  if (token === undefined) throw new ServiceError("invalid_token");
  const verification = await authenticator.verify(token, client);
  if (!verification.ok) {
    throw new ServiceError("invalid_token", `The access token is not valid: ${verification.error}`);
  }
  return verification.identity;
}

function answerText(
  outcome: Outcome,
  { dev, rest }: { readonly dev: boolean; readonly rest: string },
): readonly [status: number, body: string] {
  const logLines = logLinesText(outcome.logLines, dev);
  if (outcome.ok) {
    return [200, `{"status":"success","value":${outcome.value}${rest},"logLines":${logLines}}`];
  }
  const { errorMessage, errorData } = publicError(outcome.error, { dev });
  return [
    errorStatus(outcome.error),
    `{"status":"error","errorMessage":${JSON.stringify(errorMessage)},"errorData":${
      JSON.stringify(errorData)
    },"logLines":${logLines}}`,
  ];
}
