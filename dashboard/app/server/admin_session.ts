/**
 * The administrator's session in this browser: its tokens, kept fresh one tab at a time, and word of its end. Tokens lie in
 * the browser's storage, never in an address.
 */

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly adminId: string;
}

const KEY = "syncline.admin";
const LOCK = "syncline.admin.refresh";
/** A token that lives no longer than this is renewed before it is used. */
const FRESH_MS = 30_000;

/** What the server says of a request that it refused. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly code: string;
  readonly status: number;

  constructor(message: string, { code, status }: { readonly code: string; readonly status: number }) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const listeners = new Set<() => void>();

function read(): Tokens | null {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "null") as Tokens | null;
  } catch {
    return null;
  }
}

let tokens: Tokens | null = read();

function keep(now: Tokens | null): void {
  tokens = now;
  if (now === null) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, JSON.stringify(now));
  for (const listener of listeners) listener();
}

// Another tab signed in or out, or renewed the tokens.
addEventListener("storage", (event: Event) => {
  const { key } = event as StorageEvent;
  if (key !== KEY && key !== null) return;
  tokens = read();
  for (const listener of listeners) listener();
});

export const adminSession = {
  /** Id of the administrator, or `null`. */
  adminId: (): string | null => tokens?.adminId ?? null,

  onChange(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },

  async signIn(credentials: { readonly email: string; readonly password: string }): Promise<void> {
    keep(tokensOf(await post("/api/auth/admin/signin", credentials)));
  },

  /** Creates the first administrator with the token of the link that the server printed. */
  async setUp(
    credentials: { readonly token: string; readonly email: string; readonly password: string },
  ): Promise<void> {
    keep(tokensOf(await post("/api/auth/admin/setup", credentials)));
  },

  async needsSetup(): Promise<boolean> {
    const { needsSetup } = await (await fetch("/api/auth/admin/setup")).json() as { needsSetup: boolean };
    return needsSetup;
  },

  async signOut(): Promise<void> {
    const ended = tokens;
    keep(null);
    if (ended !== null) await post("/api/auth/signout", { refreshToken: ended.refreshToken });
  },

  /** An access token that is good for a while; `null` when the session has ended. */
  async accessToken({ force = false } = {}): Promise<string | null> {
    const held = tokens;
    if (held === null) return null;
    if (!force && held.expiresAt - Date.now() > FRESH_MS) return held.accessToken;
    return await navigator.locks.request(LOCK, async () => {
      const now = read();
      if (now === null) return null;
      // Another tab was quicker.
      if (now.accessToken !== held.accessToken) {
        tokens = now;
        return now.accessToken;
      }
      return await renew(now);
    });
  },

  /** Asks an endpoint of administrators. Throws `RequestError` when it refuses. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const token = await adminSession.accessToken();
    const headers = new Headers(init.headers);
    if (token !== null) headers.set("Authorization", `Bearer ${token}`);
    const response = await fetch(path, { ...init, headers });
    if (!response.ok) throw await refusal(response);
    return response;
  },
};

async function renew({ refreshToken }: Tokens): Promise<string | null> {
  try {
    const renewed = tokensOf(await post("/api/auth/refresh", { refreshToken }));
    keep(renewed);
    return renewed.accessToken;
  } catch (error) {
    // Only the server's word ends a session; one that cannot be asked may be back soon.
    if (!(error instanceof RequestError) || error.status !== 401) throw error;
    keep(null);
    return null;
  }
}

function tokensOf(answer: unknown): Tokens {
  const { accessToken, refreshToken, expiresIn, adminId } = answer as {
    accessToken: string;
    refreshToken: string;
    expiresIn: number;
    adminId: string;
  };
  return { accessToken, refreshToken, expiresAt: Date.now() + expiresIn * 1_000, adminId };
}

async function post(path: string, body: unknown): Promise<unknown> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await refusal(response);
  return await response.json();
}

async function refusal(response: Response): Promise<RequestError> {
  const answer = await response.json().catch(() => null) as {
    errorMessage?: string;
    errorData?: { code?: string } | null;
  } | null;
  return new RequestError(answer?.errorMessage ?? `The server answered with status ${response.status}`, {
    code: answer?.errorData?.code ?? "unknown",
    status: response.status,
  });
}
