/** The auth endpoints the client calls, in memory, with the contract's rules for refresh tokens. */
import type { FakeClock } from "./fake_clock.ts";

interface Session {
  readonly userId: string;
  refreshToken: string;
  /** Tokens that were replaced: when, and in which attempt. */
  readonly rotated: Map<string, { readonly at: number; readonly attemptId: string; readonly next: string }>;
  ended: boolean;
}

const STALE_GRACE_MS = 10_000;

export class AccountServer {
  readonly #clock: FakeClock;
  readonly #sessions: Session[] = [];
  /** Requests so far, as path and body. */
  readonly requests: [path: string, body: unknown][] = [];
  readonly #losses: (() => Promise<Response>)[] = [];
  /** Answers that did not arrive. */
  readonly lost: Response[] = [];
  /** Overrides the response. */
  answerNext: ((signal: AbortSignal) => Response | Promise<Response>) | null = null;
  #count = 0;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const path = new URL(request.url).pathname.replace("/api/auth/", "");
    const body = request.method === "POST" ? await request.json() : null;
    this.requests.push([path, body]);
    const { answerNext } = this;
    this.answerNext = null;
    if (answerNext !== null) return await answerNext(request.signal);
    const answer = this.#answer(path, body);
    const loss = path === "refresh" ? this.#losses.shift() : undefined;
    if (loss === undefined) return answer;
    this.lost.push(answer);
    return await loss();
  };

  /** Number of refresh requests. */
  get refreshes(): { readonly refreshToken: string; readonly attemptId: string }[] {
    return this.requests.filter(([path]) => path === "refresh")
      .map(([, body]) => body as { refreshToken: string; attemptId: string });
  }

  /** The next refresh is executed, but its response is replaced. */
  loseNextRefresh(arrives: () => Promise<Response>): void {
    this.#losses.push(arrives);
  }

  endAll(): void {
    for (const session of this.#sessions) session.ended = true;
  }

  #answer(path: string, body: Record<string, string>): Response {
    switch (path) {
      case "providers":
        return Response.json({
          password: true,
          magicLink: true,
          signups: true,
          anonymous: false,
          oauth: ["github"],
        });
      case "signup":
      case "signin":
      case "magic/verify":
      case "oauth/verify":
      case "reset/confirm":
        if (body["password"] === "wrong") return failure(401, "invalid_credentials");
        return this.#start(body["email"] ?? "linked");
      case "refresh":
        return this.#refresh(body["refreshToken"] ?? "", body["attemptId"] ?? "");
      case "signout":
        for (const session of this.#sessions) {
          if (session.refreshToken === body["refreshToken"]) session.ended = true;
        }
        return Response.json({});
      default:
        return Response.json({});
    }
  }

  #start(userId: string): Response {
    const session: Session = { userId, refreshToken: "", rotated: new Map(), ended: false };
    this.#sessions.push(session);
    return this.#tokens(session);
  }

  #refresh(refreshToken: string, attemptId: string): Response {
    for (const session of this.#sessions) {
      if (session.ended) continue;
      if (session.refreshToken === refreshToken) {
        const answer = this.#tokens(session);
        const at = this.#clock.now();
        session.rotated.set(refreshToken, { at, attemptId, next: session.refreshToken });
        return answer;
      }
      const rotation = session.rotated.get(refreshToken);
      if (rotation === undefined) continue;
      if (this.#clock.now() - rotation.at < STALE_GRACE_MS) {
        const again = rotation.attemptId === attemptId && rotation.next === session.refreshToken;
        return again ? this.#current(session) : failure(401, "stale_refresh_token");
      }
      session.ended = true;
      return failure(401, "refresh_token_reused");
    }
    return failure(401, "invalid_refresh_token");
  }

  #tokens(session: Session): Response {
    session.refreshToken = `refresh${++this.#count}`;
    return this.#current(session);
  }

  #current(session: Session): Response {
    const iat = Math.floor(this.#clock.now() / 1000);
    const payload = btoa(JSON.stringify({ iat, exp: iat + 900, n: this.#count })).replaceAll("=", "");
    return Response.json({
      accessToken: `e30.${payload}.sig`,
      refreshToken: session.refreshToken,
      expiresIn: 900,
      userId: session.userId,
    });
  }
}

export function failure(status: number, code: string, headers: Record<string, string> = {}): Response {
  const body = { status: "error", errorMessage: `message of ${code}`, errorData: { code, data: null } };
  return Response.json(body, { status, headers });
}
