/** The auth endpoints over HTTP (AE). */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { readJsonBody, requestText } from "../kit/request_body.ts";
import { authLimits } from "./limits.ts";
import { APP_STATE } from "./redirects.ts";
import { ServiceError } from "../errors.ts";
import type { UserAccounts } from "./accounts.ts";
import { proofSchema, type SecondFactor } from "./factors/second_factor.ts";
import { newPasskeySchema, type Passkeys } from "./passkeys/passkeys.ts";
import { assertionSchema } from "./passkeys/relying_party.ts";
import type { AdminAccounts } from "./admin/admin_accounts.ts";
import type { OAuthRoutesOptions } from "./oauth/routes.ts";
import type { SignIns } from "./oauth/sign_ins.ts";
import type { MailAccounts, ProofInput } from "./mail/mail_accounts.ts";
import type { Requester } from "./attempt_limits.ts";

/** A code or link from a mail. */
const proofFields = {
  token: z.string().optional(),
  email: z.string().optional(),
  code: z.string().optional(),
};

const password = z.string();
const email = z.string();
const redirectTo = z.string().optional();

/** One schema for each endpoint; unknown fields are ignored. */
const bodies = {
  signUp: z.object({ email, password, name: z.string().optional() }),
  signIn: z.object({ email, password }),
  refresh: z.object({
    refreshToken: z.string(),
    attemptId: z.string().min(authLimits.attemptIdCharsMin).max(authLimits.attemptIdCharsMax).optional(),
  }),
  signOut: z.object({ refreshToken: z.string().optional() }),
  mail: z.object({ email, redirectTo }),
  magicMail: z.object({ email, redirectTo, appState: z.string().regex(APP_STATE).optional() }),
  proof: z.object(proofFields),
  reset: z.object({ ...proofFields, password }),
  setup: z.object({ token: z.string(), email, password }),
  passkey: z.object({ response: assertionSchema }),
  newPasskey: z.object(newPasskeySchema.shape),
  returned: z.object({ token: z.string().max(authLimits.proofCharsMax) }),
  mfa: z.object({
    challenge: z.string().max(authLimits.proofCharsMax),
    code: z.string().optional(),
    recoveryCode: z.string().optional(),
  }),
};

/** Parses the body of an auth endpoint. Throws `body_too_large` and `bad_request`. */
function readBody<Schema extends z.ZodType>(c: Context, schema: Schema): Promise<z.infer<Schema>> {
  return readJsonBody(c.req.raw, schema, { bytesMax: authLimits.bodyBytesMax });
}

export interface AuthRoutesOptions {
  readonly accounts: UserAccounts;
  readonly mailAccounts: MailAccounts;
  readonly adminAccounts: AdminAccounts;
  readonly secondFactor: SecondFactor;
  readonly passkeys: Passkeys;
  /** Returns the session of a valid access token; `null` if it has ended. Throws `invalid_token` for an expired token. */
  readonly sessionOf: (token: string, client: string) => Promise<string | null>;
  /** Returns the session of a genuine access token, expired or not; otherwise `null`. */
  readonly sessionNamedBy: (token: string) => Promise<string | null>;
  readonly signIns: Pick<SignIns, "names" | "verify">;
  /** Routes of provider sign-ins. */
  readonly oauth: (
    requester: (c: Context) => Requester,
    onFinish: NonNullable<OAuthRoutesOptions["onFinish"]>,
  ) => Hono;
  /** Address of the client that sent a request. */
  readonly clientOf: (c: Context) => string;
  /** Called after each response of an {@linkcode authOperations} endpoint, with the status. */
  readonly onAnswer?: (operation: AuthOperation, status: number) => void;
}

/** Operations for metrics, by the last part of the path. */
const operations = {
  "anonymous": "anonymous_sign_in",
  "signup": "sign_up",
  "signin": "sign_in",
  "refresh": "refresh",
  "signout": "sign_out",
  "reset/confirm": "password_reset",
  "magic/verify": "magic_link",
  "mfa/verify": "second_factor",
  "passkey/verify": "passkey",
  "passkey/signup": "passkey_sign_up",
  "oauth/verify": "provider_sign_in",
  "admin/signin": "admin_sign_in",
  "admin/passkey/verify": "admin_passkey",
} as const;

type AuthOperation = (typeof operations)[keyof typeof operations];

export const authOperations: readonly AuthOperation[] = Object.values(operations);

/** The sub-app for `/api/auth`. Throws `ServiceError`s, which the mounting app turns into responses. */
export function authRoutes(
  {
    accounts,
    mailAccounts,
    adminAccounts,
    secondFactor,
    passkeys,
    sessionOf,
    sessionNamedBy,
    signIns,
    oauth,
    clientOf,
    onAnswer,
  }: AuthRoutesOptions,
): Hono {
  const app = new Hono();
  const requester = (c: Context): Requester => ({
    client: clientOf(c),
    userAgent: c.req.header("user-agent") ?? null,
  });
  const bearer = (c: Context) => /^Bearer +(\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
  /** The sender of a sign-in, with the session it had before. Throws `invalid_token` for an expired token. */
  const requesterInSession = async (c: Context): Promise<Requester> => {
    const token = bearer(c);
    const priorSession = token === undefined ? null : await sessionOf(token, clientOf(c));
    return { ...requester(c), priorSession };
  };

  app.use("*", async (c, next) => {
    await next();
    c.header("Cache-Control", "no-store");
  });
  if (onAnswer !== undefined) {
    for (const [path, operation] of Object.entries(operations)) {
      app.post(`/${path}`, async (c, next) => {
        await next();
        onAnswer(operation, c.res.status);
      });
    }
  }

  app.get("/providers", (c) => {
    return c.json({ password: true, ...accounts.offered, oauth: signIns.names });
  });
  app.post("/anonymous", async (c) => c.json(await accounts.signInAnonymously(requester(c))));
  app.post(
    "/signup",
    async (c) => c.json(await accounts.signUp(await readBody(c, bodies.signUp), await requesterInSession(c))),
  );
  app.post(
    "/signin",
    async (c) => c.json(await accounts.signIn(await readBody(c, bodies.signIn), await requesterInSession(c))),
  );
  app.post(
    "/refresh",
    async (c) => c.json(await accounts.refresh(await readBody(c, bodies.refresh), requester(c))),
  );
  app.post("/signout", async (c) => {
    const token = bearer(c);
    const sessionId = token === undefined ? null : await sessionNamedBy(token);
    await accounts.signOut({ refreshToken: await optionalRefreshToken(c), sessionId });
    return c.json({});
  });

  app.post("/verify-email/request", async (c) => {
    mailAccounts.requestVerification(await readBody(c, bodies.mail), requester(c));
    return c.json({});
  });
  app.post("/verify-email/confirm", async (c) => {
    await mailAccounts.confirmVerification(givenProof(await readBody(c, bodies.proof)), requester(c));
    return c.json({});
  });
  app.post("/reset/request", async (c) => {
    mailAccounts.requestReset(await readBody(c, bodies.mail), requester(c));
    return c.json({});
  });
  app.post("/reset/confirm", async (c) => {
    const { password, ...proof } = await readBody(c, bodies.reset);
    return c.json(
      await mailAccounts.confirmReset({ given: givenProof(proof), password }, await requesterInSession(c)),
    );
  });
  app.post("/magic/request", async (c) => {
    mailAccounts.requestMagic(await readBody(c, bodies.magicMail), requester(c));
    return c.json({});
  });
  app.post(
    "/magic/verify",
    async (c) =>
      c.json(
        await mailAccounts.verifyMagic(
          givenProof(await readBody(c, bodies.proof)),
          await requesterInSession(c),
        ),
      ),
  );

  app.post("/mfa/verify", async (c) => {
    const { challenge, ...given } = await readBody(c, bodies.mfa);
    const proof = proofSchema.safeParse(given);
    if (!proof.success) throw new ServiceError("bad_request", "Expected a code or a recovery code");
    return c.json(
      await secondFactor.finishSignIn({ challenge, given: proof.data }, await requesterInSession(c)),
    );
  });

  app.post("/passkey/verify", async (c) => {
    const { response } = await readBody(c, bodies.passkey);
    return c.json(await passkeys.signIn({ kind: "user", response }, await requesterInSession(c)));
  });
  app.post("/passkey/signup", async (c) => {
    const passkey = await readBody(c, bodies.newPasskey);
    return c.json(await passkeys.signUp(passkey, await requesterInSession(c)));
  });

  app.post("/oauth/verify", async (c) => {
    const { token } = await readBody(c, bodies.returned);
    return c.json(await signIns.verify(token, await requesterInSession(c)));
  });
  // A callback that ends with an error, with an identity to link, or with tokens for clients that do not verify.
  app.route("/oauth", oauth(requester, (status) => onAnswer?.(operations["oauth/verify"], status)));

  app.post(
    "/admin/signin",
    async (c) => c.json(await accounts.signInAdmin(await readBody(c, bodies.signIn), requester(c))),
  );
  app.post("/admin/passkey/verify", async (c) => {
    const { response } = await readBody(c, bodies.passkey);
    return c.json(await passkeys.signIn({ kind: "admin", response }, requester(c)));
  });
  app.get("/admin/setup", async (c) => c.json({ needsSetup: await adminAccounts.needsSetup() }));
  app.post(
    "/admin/setup",
    async (c) => c.json(await adminAccounts.setUp(await readBody(c, bodies.setup), requester(c))),
  );
  return app;
}

/** Sign-out never fails: an unreadable body counts as one without a refresh token. */
async function optionalRefreshToken(c: Context): Promise<string | null> {
  try {
    const text = await requestText(c.req.raw, authLimits.bodyBytesMax);
    return bodies.signOut.parse(JSON.parse(text)).refreshToken ?? null;
  } catch {
    return null;
  }
}

function givenProof(
  { token, email, code }: {
    token?: string | undefined;
    email?: string | undefined;
    code?: string | undefined;
  },
): ProofInput {
  if (token !== undefined) return { token };
  if (email !== undefined && code !== undefined) return { email, code };
  throw new ServiceError("bad_request", "Expected the token of the link, or the email address and the code");
}
