/** One function call over HTTP (HC). */
import type { ErrorData } from "../../protocol/server_messages.ts";
import { httpAddress } from "../connection/addresses.ts";

/** Names a mutation in a request; an answer that has it says that the server has read it, and would recognise it. */
export const REQUEST_HEADER = "Syncline-Request";

/** Where calls go and what carries them. */
export interface HttpServer {
  readonly server: string | URL;
  readonly fetch: typeof fetch;
}

/** The function to call and who calls it. */
export interface HttpCall {
  readonly kind: "query" | "mutation" | "action";
  readonly udfPath: string;
  readonly args: object;
  /** Access token; anonymous without one. */
  readonly token: string | null;
  /** Session and request id, by which the server recognises a mutation that comes again. */
  readonly request?: string;
}

/** What a call over HTTP gives. */
export interface HttpAnswer {
  readonly status: "success" | "error";
  readonly value?: unknown;
  /** Commit timestamp, of mutations. */
  readonly ts?: number;
  readonly errorMessage?: string;
  readonly errorData?: ErrorData;
  readonly errorId?: string | null;
  readonly logLines?: readonly string[];
}

/** Status and body of the response; an answer that is not the server's own, such as a proxy's page, is `null`. */
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
