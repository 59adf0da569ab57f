/** Accounts wired like in the server, with a clock, mail and passwords controlled by the test. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { Hono } from "hono";
import type { Mail } from "../../../mod/auth/mail/mailer.ts";
import { type AccountService, createAccounts, type ExternalAuth } from "../../../mod/auth/mod.ts";
import { PasswordHasher } from "../../../mod/auth/passwords.ts";
import { deriveKeys } from "../../../mod/auth/secret_key.ts";
import type { Tokens } from "../../../mod/auth/tokens/session_tokens.ts";
import { ServiceError } from "../../../mod/errors.ts";
import { anonymous, type Identity } from "../../../mod/functions/identity.ts";
import { errorResponse, failureResponse } from "../../../mod/kit/error_response.ts";
import { type AppParts, type InProcessPort, openInProcessPort } from "./in_process_port.ts";

export interface TestAccountsOptions {
  readonly signups?: boolean;
  readonly magicLink?: boolean;
  readonly totp?: boolean;
  readonly passkeys?: boolean;
  readonly deviceMail?: boolean;
  readonly userKeys?: readonly string[];
  readonly anonymous?: boolean;
  readonly requireVerification?: boolean;
  readonly mail?: boolean;
  readonly dev?: boolean;
  readonly redirectUrls?: readonly string[];
  readonly secret?: Uint8Array;
  readonly passwords?: PasswordHasher;
  /** Tables and functions of the app. */
  readonly app?: AppParts;
  /** Providers and issuers. */
  readonly externalAuth?: (now: () => number) => Promise<ExternalAuth>;
  /** Default: http://localhost:3210. */
  readonly publicUrl?: string;
  /** The server's address for browsers. */
  readonly origin?: string;
  /** Called for each counted response. */
  readonly onAnswer?: (operation: string, status: number) => void;
}

/** A response, read. */
export interface Answer {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- tests look into bodies of many shapes
  readonly body: any;
  readonly headers: Headers;
}

export interface RequestOptions {
  /** Access token. */
  readonly bearer?: string;
  /** Address of the client. */
  readonly from?: string;
  readonly headers?: Record<string, string>;
  /** Raw body. Default: the JSON of `body`. */
  readonly text?: string;
}

export interface TestAccounts extends AsyncDisposable {
  readonly service: AccountService;
  readonly port: InProcessPort;
  readonly mails: Mail[];
  readonly logged: string[];
  /** Milliseconds; starts at a fixed instant. */
  readonly clock: { now: number };
  post(path: string, body?: unknown, options?: RequestOptions): Promise<Answer>;
  get(path: string, options?: RequestOptions): Promise<Answer>;
  /** Status of a HEAD request. */
  head(path: string, options?: RequestOptions): Promise<number>;
  /** Signs up and returns the tokens. */
  signUp(email: string, password?: string): Promise<Tokens>;
  /** Creates an administrator and signs them in. */
  signInAdmin(email: string, password?: string): Promise<Tokens>;
  /** Returns the newest mail to an address after all pending mails were sent. */
  mailTo(email: string): Promise<{ code: string; token: string; link: string; mail: Mail } | null>;
  /** Calls a function as a client would. Throws with the error's code. */
  call(udfPath: string, args: Record<string, unknown>, accessToken: string | null): Promise<unknown>;
  identityOf(accessToken: string): Promise<Identity>;
}

export const password = "correct horse";

export async function startTestAccounts(options: TestAccountsOptions = {}): Promise<TestAccounts> {
  const clock = { now: Date.UTC(2030, 0, 1) };
  const now = () => clock.now;
  const mails: Mail[] = [];
  const logged: string[] = [];
  const port = await openInProcessPort(now, options.app);
  const mailer = {
    send: (mail: Mail) => {
      mails.push(mail);
      return Promise.resolve();
    },
    [Symbol.dispose]: () => {},
  };
  const externalAuth = await options.externalAuth?.(now);
  const service = await createAccounts({
    keys: deriveKeys(options.secret ?? randomBytes(32)),
    port,
    policy: {
      signups: options.signups ?? true,
      magicLink: options.magicLink ?? true,
      totp: options.totp ?? true,
      passkeys: options.passkeys ?? true,
      deviceMail: options.deviceMail ?? true,
      userKeys: options.userKeys ?? [],
      anonymous: options.anonymous ?? false,
      anonymousUserMs: 30 * 86_400_000,
      requireVerification: options.requireVerification ?? false,
    },
    accessTokenMs: 900_000,
    redirectUrls: options.redirectUrls ?? ["https://app.example.com/auth"],
    dev: options.dev ?? false,
    publicUrl: () => options.publicUrl ?? "http://localhost:3210",
    mailer: options.mail === false ? null : mailer,
    templatesDir: null,
    appName: "Test",
    clientOf: (c) => c.req.header("x-test-client") ?? "203.0.113.1",
    log: (level, message) => logged.push(`${level} ${message}`),
    now,
    ...(options.onAnswer && { onAnswer: options.onAnswer }),
    ...(options.origin !== undefined && { originOf: () => options.origin ?? "" }),
    ...(externalAuth && { externalAuth: { externalAuth, [Symbol.asyncDispose]: () => Promise.resolve() } }),
    passwords: options.passwords ?? new PasswordHasher({ cost: { memoryKiB: 64, passes: 1, lanes: 1 } }),
  });
  port.onCommits((entries) => service.applyCommits(entries));
  const app = new Hono().route("/api/auth", service.routes);
  app.notFound(() => errorResponse(new ServiceError("not_found")));
  app.onError((error) => {
    return failureResponse(error, (level, message) => logged.push(`${level} ${message}`));
  });

  async function request(method: string, path: string, { body, options = {} }: {
    body?: unknown;
    options?: RequestOptions | undefined;
  }): Promise<Answer> {
    const { bearer, from, headers = {}, text } = options;
    const response = await app.request(`/api/auth${path}`, {
      method,
      redirect: "manual",
      headers: {
        ...(method === "POST" && { "Content-Type": "application/json" }),
        ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
        ...(from !== undefined && { "X-Test-Client": from }),
        ...headers,
      },
      ...(method === "POST" && { body: text ?? JSON.stringify(body ?? {}) }),
    });
    assert.equal(response.headers.get("cache-control"), "no-store", `${method} ${path} may be stored`);
    const json = response.headers.get("content-type")?.startsWith("application/json") === true;
    const read = json ? await response.json() : await response.text();
    return { status: response.status, body: read, headers: response.headers };
  }

  const post: TestAccounts["post"] = (path, body, options) => request("POST", path, { body, options });

  async function identityOf(accessToken: string): Promise<Identity> {
    const verified = await service.authenticator.verify(accessToken);
    assert.ok(verified.ok, verified.ok ? "" : verified.error);
    return verified.identity;
  }

  return {
    service,
    port,
    mails,
    logged,
    clock,
    post,
    get: (path, options) => request("GET", path, { options }),
    async head(path, { headers = {} } = {}) {
      return (await app.request(`/api/auth${path}`, { method: "HEAD", headers })).status;
    },
    async signUp(email, chosen = password) {
      const { status, body } = await post("/signup", { email, password: chosen }, { from: email });
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
    async signInAdmin(email, chosen = password) {
      await service.admins.create({ email, password: chosen });
      const { status, body } = await post("/admin/signin", { email, password: chosen }, { from: email });
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
    async mailTo(email) {
      await service.mailSettled();
      const mail = mails.findLast(({ to }) => to === email);
      if (mail === undefined) return null;
      const link = /https?:\S+/.exec(mail.text)?.[0] ?? "";
      const token = /#svc_\w+=(\S+)/.exec(link)?.[1] ?? "";
      return { code: /\b\d{6}\b/.exec(mail.text.replace(link, ""))?.[0] ?? "", token, link, mail };
    },
    identityOf,
    async call(udfPath, args, accessToken) {
      const identity = accessToken === null ? anonymous : await identityOf(accessToken);
      const call = { udfPath, args, identity, origin: "client" } as const;
      const kind = port.info(udfPath)?.spec.kind;
      const outcome = await service.actions.get(udfPath)?.run(args, identity) ??
        (kind === "mutation" ? (await port.mutate(call)).outcome : await port.query(call));
      if (outcome.ok) return JSON.parse(outcome.value);
      throw new Error(outcome.error.data?.code ?? `${outcome.error.kind}: ${outcome.error.message}`);
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await port[Symbol.asyncDispose]();
    },
  };
}
