/**
 * The administrator's session in this browser. Tokens are kept in local storage, never in an address, and are refreshed by
 * one tab at a time.
 */
import {
  challengeOf,
  type FactorProof,
  type PasskeySignInOptions,
  type SignInChallenge,
  signInWithPasskey,
} from "syncline/accounts";
import type { SynclineClient } from "syncline/client";
import { functionPath, type FunctionReference } from "../../../mod/protocol/function_reference.ts";

interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly adminId: string;
}

const KEY = "syncline.admin";
const LOCK = "syncline.admin.refresh";
/** Tokens that expire sooner than this are refreshed before use. */
const FRESH_MS = 30_000;

export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly code: string;
  readonly status: number;
  readonly data: unknown;

  constructor(
    message: string,
    { code, status, data = null, cause }: {
      readonly code: string;
      readonly status: number;
      readonly data?: unknown;
      readonly cause?: unknown;
    },
  ) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.data = data;
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

function store(now: Tokens | null): void {
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
  /** ID of the signed-in administrator, or `null`. */
  adminId: (): string | null => tokens?.adminId ?? null,

  onChange(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },

  /** Resolves to a challenge if the administrator has a second factor; otherwise signs in. */
  async signIn(
    credentials: { readonly email: string; readonly password: string },
  ): Promise<SignInChallenge | null> {
    try {
      store(tokensOf(await post("/api/auth/admin/signin", credentials)));
      return null;
    } catch (error) {
      const challenge = challengeOf(error);
      if (challenge === null) throw error;
      return challenge;
    }
  },

  /** Signs in with a second factor. */
  async finishSignIn({ challenge }: SignInChallenge, proof: FactorProof): Promise<void> {
    store(tokensOf(await post("/api/auth/mfa/verify", { challenge, ...proof })));
  },

  /**
   * Signs in with a passkey: in a dialog or, with `autofill`, in a field with `autocomplete="username webauthn"`. Throws `RequestError`,
   * and the errors of `signInWithPasskey`.
   */
  async signInWithPasskey(options: PasskeySignInOptions = {}): Promise<void> {
    await signInWithPasskey(passkeyClient, options);
  },

  /** Creates the first administrator with the token of the setup link printed by the server. */
  async setUp(
    credentials: { readonly token: string; readonly email: string; readonly password: string },
  ): Promise<void> {
    store(tokensOf(await post("/api/auth/admin/setup", credentials)));
  },

  async needsSetup(): Promise<boolean> {
    const { needsSetup } = await (await fetch("/api/auth/admin/setup")).json() as { needsSetup: boolean };
    return needsSetup;
  },

  async signOut(): Promise<void> {
    const ended = tokens;
    store(null);
    if (ended !== null) await post("/api/auth/signout", { refreshToken: ended.refreshToken });
  },

  /** Returns a valid access token, or `null` if the session has ended. */
  async accessToken({ force = false } = {}): Promise<string | null> {
    const held = tokens;
    if (held === null) return null;
    if (!force && held.expiresAt - Date.now() > FRESH_MS) return held.accessToken;
    return await navigator.locks.request(LOCK, async () => {
      const now = read();
      if (now === null) return null;
      // Another tab has refreshed the tokens in the meantime.
      if (now.accessToken !== held.accessToken) {
        tokens = now;
        return now.accessToken;
      }
      return await refresh(now);
    });
  },

  /** Sends an authenticated request. Throws `RequestError` if the server rejects it. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const token = await adminSession.accessToken();
    const headers = new Headers(init.headers);
    if (token !== null) headers.set("Authorization", `Bearer ${token}`);
    const response = await send(path, { ...init, headers });
    if (!response.ok) throw await errorOf(response);
    return response;
  },
};

/** Like `fetch`, with an error that users understand. */
async function send(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new RequestError("The server does not answer", { code: UNREACHABLE, status: 0, cause });
  }
}

/** Code of the error for requests without a response. */
export const UNREACHABLE = "unreachable";

async function refresh({ refreshToken }: Tokens): Promise<string | null> {
  try {
    const renewed = tokensOf(await post("/api/auth/refresh", { refreshToken }));
    store(renewed);
    return renewed.accessToken;
  } catch (error) {
    // Only a 401 ends the session; an unreachable server may come back.
    if (!(error instanceof RequestError) || error.status !== 401) throw error;
    store(null);
    return null;
  }
}

/** The part of a client that `syncline/accounts` signs in with, for the endpoint of administrators. */
const passkeyClient = {
  async action(path: string, args: object): Promise<unknown> {
    return (await post("/api/action", { path, args }) as { readonly value: unknown }).value;
  },
  auth: {
    async signInAt(path: string, body: object): Promise<void> {
      store(tokensOf(await post(`/api/auth/admin/${path}`, body)));
    },
  },
} as unknown as SynclineClient;

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
  const response = await send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await errorOf(response);
  return await response.json();
}

async function errorOf(response: Response): Promise<RequestError> {
  const answer = await response.json().catch(() => null) as {
    errorMessage?: string;
    errorData?: { code?: string; data?: unknown } | null;
  } | null;
  return new RequestError(answer?.errorMessage ?? `The server responded with status ${response.status}`, {
    code: answer?.errorData?.code ?? "unknown",
    status: response.status,
    data: answer?.errorData?.data ?? null,
  });
}

/** Throws `RequestError` if the query fails. */
export async function queryOnce<Args, Result>(
  query: FunctionReference<"query", Args, Result>,
  args: NoInfer<Args>,
): Promise<Result> {
  const response = await adminSession.fetch("/api/query", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ path: functionPath(query), args }),
  });
  return (await response.json() as { readonly value: Result }).value;
}
