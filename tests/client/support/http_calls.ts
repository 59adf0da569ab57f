/** The HTTP endpoints of function calls, in memory: the test answers when and how it likes. */

/** A call in transit. */
export interface HttpRequest {
  /** `health`, `query`, `mutation` or `action`. */
  readonly kind: string;
  readonly path: string;
  readonly args: Record<string, unknown>;
  readonly token: string | null;
}

type Answer = (request: HttpRequest) => Response | Promise<Response>;

export class HttpCalls {
  /** All requests so far. */
  readonly requests: HttpRequest[] = [];
  /** Requests in flight, and their maximum. */
  open = 0;
  openMost = 0;
  /** Whether the server recognizes repeated mutations. */
  recognises = true;
  /** Whether the server can be reached. */
  up = true;
  /** Answers by kind, or by path. */
  /** Names of the mutations, as the server would recognise them. */
  readonly names: (string | null)[] = [];
  readonly answers = new Map<string, Answer>([["health", () => Response.json({ status: "ok" })]]);
  #taken = 0;

  readonly fetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const kind = new URL(request.url).pathname.replace("/base/api/", "");
    const { path, args } = request.method === "POST" ? await request.json() : { path: "", args: {} };
    const token = request.headers.get("Authorization")?.replace("Bearer ", "") ?? null;
    const call = { kind, path, args, token };
    this.requests.push(call);
    if (kind === "mutation") this.names.push(request.headers.get("Syncline-Request"));
    this.openMost = Math.max(this.openMost, ++this.open);
    try {
      if (!this.up) throw new TypeError("cannot be reached");
      const answer = this.answers.get(path) ?? this.answers.get(kind);
      if (answer === undefined) throw new Error(`no answer for ${kind} ${path}`);
      const response = await Promise.race([answer(call), aborted(request.signal)]);
      if (this.recognises && request.headers.has("Syncline-Request")) {
        response.headers.set("Syncline-Request", "recognised");
      }
      return response;
    } finally {
      this.open--;
    }
  };

  /** Returns the requests since the last call, without checks of `/api/health`. */
  take(): HttpRequest[] {
    const requests = this.requests.slice(this.#taken);
    this.#taken = this.requests.length;
    return requests.filter(({ kind }) => kind !== "health");
  }
}

/** A successful answer. */
export function success(value: unknown, rest: { readonly ts?: number } = {}): Response {
  return Response.json({ status: "success", value, ...rest, logLines: [] });
}

/** The answer to a token that is not accepted. */
export function invalidToken(): Response {
  const errorData = { code: "invalid_token", data: null };
  return Response.json({ status: "error", errorMessage: "no", errorData }, { status: 401 });
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}
