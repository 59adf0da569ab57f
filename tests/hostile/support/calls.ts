/** Calls of an attacker over HTTP. Scenarios await their answers only if they need them. */

export interface CallOptions {
  readonly port: number;
  readonly path: string;
  readonly args?: Record<string, unknown>;
  readonly token?: string;
}

export interface CallAnswer {
  readonly httpStatus: number;
  readonly ms: number;
  readonly status: "success" | "error";
  readonly value?: unknown;
  readonly errorMessage?: string;
  readonly errorData?: { readonly code: string } | null;
}

/** Calls a function on a new connection. */
export async function callOf(
  kind: "query" | "mutation" | "action",
  { port, path, args = {}, token }: CallOptions,
): Promise<CallAnswer> {
  const startedAt = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/api/${kind}`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ path, args }),
  });
  const answer = await response.json();
  return { ...answer, httpStatus: response.status, ms: performance.now() - startedAt };
}
