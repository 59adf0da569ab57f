/** The auth endpoints the client calls, in memory, with the contract's rules for refresh tokens. */
import type { FakeClock } from "./fake_clock.ts";

interface Session {
  readonly userId: string;
  refreshToken: string;
  readonly rotated: Map<string, number>;
  ended: boolean;
}

const STALE_GRACE_MS = 10_000;

export class AccountServer {
  readonly #clock: FakeClock;
  readonly #sessions: Session[] = [];
  /** Requests so far, as path and body. */
  readonly requests: [path: string, body: unknown][] = [];
  /** Set to answer something else. */
  answerNext: (() => Response | Promise<Response>) | null = null;
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
    return answerNext === null ? this.#answer(path, body) : await answerNext();
  };

  endAll(): void {
    for (const session of this.#sessions) session.ended = true;
  }

  #answer(path: string, body: Record<string, string>): Response {
    switch (path) {
      case "providers":
        return Response.json({ password: true, magicLink: true, signups: true, oauth: ["github"] });
      case "signup":
      case "signin":
      case "magic/verify":
      case "reset/confirm":
        if (body["password"] === "wrong") return failure(401, "invalid_credentials");
        return this.#start(body["email"] ?? "linked");
      case "refresh":
        return this.#refresh(body["refreshToken"] ?? "");
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
    const session = { userId, refreshToken: "", rotated: new Map<string, number>(), ended: false };
    this.#sessions.push(session);
    return this.#tokens(session);
  }

  #refresh(refreshToken: string): Response {
    for (const session of this.#sessions) {
      if (session.ended) continue;
      if (session.refreshToken === refreshToken) {
        session.rotated.set(refreshToken, this.#clock.now());
        return this.#tokens(session);
      }
      const rotatedAt = session.rotated.get(refreshToken);
      if (rotatedAt === undefined) continue;
      if (this.#clock.now() - rotatedAt <= STALE_GRACE_MS) return failure(401, "stale_refresh_token");
      session.ended = true;
      return failure(401, "refresh_token_reused");
    }
    return failure(401, "invalid_refresh_token");
  }

  #tokens(session: Session): Response {
    session.refreshToken = `refresh${++this.#count}`;
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
