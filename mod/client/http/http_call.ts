/** One function call over HTTP (HC). */
import type { ErrorData } from "../../protocol/server_messages.ts";
import { httpAddress } from "../connection/addresses.ts";

/** Request header that identifies a mutation. A response with it shows that the server deduplicates mutations. */
export const REQUEST_HEADER = "Syncline-Request";

/** URL of the endpoint and the transport. */
export interface HttpServer {
  readonly server: string | URL;
  readonly fetch: typeof fetch;
}

/** The function and the caller. */
export interface HttpCall {
  readonly kind: "query" | "mutation" | "action";
  readonly udfPath: string;
  readonly args: object;
  /** Access token; anonymous if absent. */
  readonly token: string | null;
  /** Session and request id, by which the server recognises a resent mutation. */
  readonly request?: string;
}

/** Response of a call over HTTP. */
export interface HttpAnswer {
  readonly status: "success" | "error";
  readonly value?: unknown;
  /** Commit ts of a mutation. */
  readonly ts?: number;
  readonly errorMessage?: string;
  readonly errorData?: ErrorData;
  readonly errorId?: string | null;
  readonly logLines?: readonly string[];
}

/** Returns status and body; a body that is not from the server, such as a proxy's page, is `null`. */
export async function callOverHttp(
  { server, fetch }: HttpServer,
  { call, signal }: { readonly call: HttpCall; readonly signal?: AbortSignal },
): Promise<{ readonly status: number; readonly answer: HttpAnswer | null; readonly recognised: boolean }> {
  const { kind, udfPath, args, token, request } = call;
  const response = await fetch(httpAddress(server, `api/${kind}`), {
    method: "POST",
    cache: "no-store",
    headers: {
      "Content-Type": "application/json",
      ...token && { Authorization: `Bearer ${token}` },
      ...request && { [REQUEST_HEADER]: request },
    },
    body: JSON.stringify({ path: udfPath, args }),
    ...signal && { signal },
  });
  return {
    status: response.status,
    answer: parseAnswer(await response.text(), response.headers.get(`${REQUEST_HEADER}-Id`)),
    recognised: response.headers.has(REQUEST_HEADER),
  };
}

function parseAnswer(text: string, errorId: string | null): HttpAnswer | null {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === "object" && answer !== null && "status" in answer
      ? { ...answer as HttpAnswer, errorId }
      : null;
  } catch {
    return null;
  }
}
