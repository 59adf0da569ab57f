/** Public API of accounts. */
import type { Context, Hono } from "hono";
import type { CommitEntry } from "../engine/types.ts";
import { type MainAction, mainAction } from "../functions/main_actions.ts";
import { addressKey } from "../kit/client_address.ts";
import type { Log } from "../kit/log.ts";
import { AccessTokens } from "./tokens/access_token.ts";
import { type AccountParts, type AccountPolicy, UserAccounts } from "./accounts.ts";
import { AdminAccounts, Impersonation } from "./admin/admin_accounts.ts";
import { administratorActions } from "./admin/administrator_actions.ts";
import { userActions } from "./admin/user_actions.ts";
import { AccountAuthenticator } from "./authenticator.ts";
import { AttemptLimits } from "./attempt_limits.ts";
import { CodeMail } from "./mail/code_mail.ts";
import { ServiceError, UserError } from "../errors.ts";
import { normalizedEmail } from "./email_address.ts";
import type { RateLimits } from "./limits.ts";
import { MailAccounts } from "./mail/mail_accounts.ts";
import type { Mail, Mailer } from "./mail/mailer.ts";
import { ExternalTokens } from "./issuers/mod.ts";
import {
  type ExternalAuth,
  linkIdentityArgs,
  Links,
  noExternalAuth,
  oauthRoutes,
  SignIns,
  startLinkArgs,
  unlinkIdentityArgs,
} from "./oauth/mod.ts";
import { apiKeyActions, ApiKeyVerifier } from "./api_keys/api_keys.ts";
import { Passkeys } from "./passkeys/passkeys.ts";
import { SecondFactor } from "./factors/second_factor.ts";
import { TotpApps } from "./factors/totp_apps.ts";
import { Outbox } from "./mail/outbox.ts";
import { loadTemplates, type MailTexts } from "./mail/templates.ts";
import type { MailKind } from "./mail/built_in_templates.ts";
import { changeEmailArgs, changePasswordArgs, OwnAccountActions } from "./own_account.ts";
import { PasswordHasher } from "./passwords.ts";
import { Redirects } from "./redirects.ts";
import { RefreshTokens } from "./tokens/refresh_token.ts";
import { authRoutes, type AuthRoutesOptions } from "./routes.ts";
import type { SecretKeys } from "./secret_key.ts";
import { SessionTokens } from "./tokens/session_tokens.ts";
import { createSweeper } from "./sweeper.ts";
import { type CallPort, SystemCalls } from "./system_calls.ts";
import { TokenHasher } from "./tokens/token_hash.ts";

export type { AccountPolicy } from "./accounts.ts";
export {
  AccountAuthenticator,
  type EndedSession,
  type ExternalIssuers,
  type TokenVerification,
} from "./authenticator.ts";
export { AttemptLimits } from "./attempt_limits.ts";
export { ApiKeyVerifier, isApiKey } from "./api_keys/api_keys.ts";
export { AccessTokens } from "./tokens/access_token.ts";
export { AdminChannel, adminSocketFile, sendAdminCommand } from "./admin/admin_channel.ts";
export { type AdminAnswer, type AdminCommand, runAdminCommand } from "./admin/admin_channel.ts";
export { AdminAccounts } from "./admin/admin_accounts.ts";
export { type Mailer, printingMailer, smtpMailer, type SmtpOptions } from "./mail/mailer.ts";
export { normalizedEmail } from "./email_address.ts";
export { parseEntry } from "./redirects.ts";
export { authOperations } from "./routes.ts";
export {
  AuthConfigError,
  AuthConfigFile,
  type AuthConfigSource,
  callbackOf,
  ConfiguredExternalAuth,
  type ExternalAuth,
  presetParts,
  type ProviderCheck,
  type ProviderStep,
  readAuthConfig,
} from "./oauth/mod.ts";
export type { MailKind } from "./mail/built_in_templates.ts";
export { loadTemplates, TemplateError, templateOf } from "./mail/templates.ts";
export {
  type LoadedSecret,
  loadSecretKeys,
  SecretKeyError,
  secretKeyFile,
  type SecretKeys,
} from "./secret_key.ts";

export interface AccountsOptions {
  readonly keys: SecretKeys;
  readonly port: CallPort;
  readonly policy: AccountPolicy;
  readonly accessTokenMs: number;
  /** Entries of `--auth-redirect-url`. */
  readonly redirectUrls: readonly string[];
  readonly rateLimits?: RateLimits;
  readonly dev: boolean;
  /** Origin of this server for browsers. */
  readonly publicUrl: () => string;
  /** Sends mail; `null` if mail is not configured. Closed with the accounts. */
  readonly mailer: Mailer | null;
  /** Folder of mail templates, or `null` for the built-in ones. */
  readonly templatesDir: string | null;
  /** Template texts that replace the built-in ones. */
  readonly mailTexts?: MailTexts;
  readonly appName: string;
  /** Address of the client that sent a request. */
  readonly clientOf: (c: Context) => string;
  /** The currently configured providers and issuers. Default: none. Closed with the accounts. */
  readonly externalAuth?: ExternalAuthSource;
  /** Origin of this server for the browser that sent a request. Default: `publicUrl`. */
  readonly originOf?: (c: Context) => string;
  /** Called after sign-ins, refreshes and similar operations. */
  readonly onAnswer?: AuthRoutesOptions["onAnswer"];
  /** Whether another server owns the accounts; then nothing is swept here. */
  readonly readOnly?: boolean;
  /** Resolves when commits made elsewhere are applied here, or after a timeout; absent if there are none elsewhere. */
  readonly caughtUp?: (() => Promise<void>) | undefined;
  readonly log: Log;
  readonly now?: () => number;
  readonly passwords?: PasswordHasher;
  /** Concurrent password hashes. Default: `authLimits.hashesAtOnceMax`. */
  readonly hashesAtOnce?: number;
}

/** The current sources of identities besides this server. */
export interface ExternalAuthSource extends AsyncDisposable {
  readonly externalAuth: ExternalAuth;
}

/** The settings of accounts that can change at run time. */
export interface AccountsChange
  extends Pick<AccountsOptions, "policy" | "redirectUrls" | "templatesDir" | "mailTexts" | "appName"> {
  /** `undefined` to leave it unchanged. */
  readonly mailer: Mailer | null | undefined;
  readonly rateLimits: RateLimits;
}

/** A kind of mail with its current template, or with the given one. */
export interface TemplateChoice {
  readonly kind: MailKind;
  readonly text?: string | undefined;
}

export interface AccountService extends AsyncDisposable {
  readonly authenticator: AccountAuthenticator;
  /** Routes below `/api/auth`. */
  readonly routes: Hono;
  /** Actions by function path. */
  readonly actions: ReadonlyMap<string, MainAction>;
  readonly admins: AdminAccounts;
  readonly sessions: Impersonation;
  /** Applies new settings. Throws `TypeError` or `TemplateError` without changing anything. */
  configure(change: AccountsChange): Promise<void>;
  /**
   * Sends a test mail: of one kind with sample values, or a generic one. Throws a `UserError` with the mail server's reason.
   */
  sendTestMail(to: string, template?: TemplateChoice): Promise<void>;
  /** Makes one attempt to send a mail. Throws `mail_disabled` without a mail server, and its reason if it fails. */
  sendMail(mail: Mail): Promise<void>;
  /** Why mail to users cannot be sent at present, or `null`. */
  readonly mailTrouble: string | null;
  /** Renders a mail with sample values. Rejects with a `TemplateError` for an unusable template. */
  previewMail(template: TemplateChoice): Promise<Mail>;
  /** Returns the setup link of the first administrator, or `null` if one exists. */
  setupLink(): Promise<string | null>;
  /** Applies commits. Call with each group, in order. */
  applyCommits(entries: readonly CommitEntry[]): void;
  /** Call after commits may have been missed. Reports the sessions that ended in the meantime. */
  recheckSessions(): void;
  /** Deletes expired rows now; also runs periodically. */
  sweep(): Promise<void>;
  /** Resolves when every requested mail has been sent or waits for a retry. */
  mailSettled(): Promise<void>;
}

/** Path of the service's own page for mail links, below the public URL. */
const ACCOUNT_PAGE = "/_/account.html";
/** Path of the page where administrators are set up and sign in. */
const DASHBOARD_PAGE = "/_/";

/** Recipient of previewed mails. */
const SAMPLE_ADDRESS = "somebody@example.com";

/** Creates the accounts. Throws `TypeError` or `TemplateError` for invalid settings. */
export async function createAccounts(options: AccountsOptions): Promise<AccountService> {
  const { keys, port, policy, log, now = Date.now } = options;
  const calls = new SystemCalls(port);
  const hasher = await TokenHasher.create(keys.tokenHashes);
  const accessTokens = new AccessTokens(keys.accessTokens);
  const refreshTokens = new RefreshTokens(keys.refreshTokens);
  const accountPage = () => `${options.publicUrl()}${ACCOUNT_PAGE}`;
  const redirects = new Redirects({ allowed: options.redirectUrls, dev: options.dev, fallback: accountPage });
  const templates = await loadTemplates(options.templatesDir, options.mailTexts);
  let { mailer } = options;
  let outbox = mailer === null ? null : new Outbox({ mailer, log });
  let { appName } = options;
  const mail = new CodeMail({ hasher, outbox, templates, appName, now, log });
  const currentPolicy = { ...policy };
  const limits = new AttemptLimits(now);
  limits.use(options.rateLimits ?? {});
  const parts: AccountParts = {
    policy: currentPolicy,
    calls,
    sessions: new SessionTokens({
      accessTokens,
      refreshTokens,
      hasher,
      accessTokenMs: options.accessTokenMs,
      now,
      onNewDevice({ email, device }, at) {
        if (currentPolicy.deviceMail && limits.mayMailDevice(email)) mail.reportDevice({ email, device, at });
      },
    }),
    passwords: options.passwords ??
      new PasswordHasher(options.hashesAtOnce === undefined ? {} : { atOnceMax: options.hashesAtOnce }),
    refreshTokens,
    hasher,
    limits,
    redirects,
    mail,
    totp: new TotpApps(keys.factors),
    now,
  };
  const externalAuth = () => options.externalAuth?.externalAuth ?? noExternalAuth;
  const external = new ExternalTokens({ issuers: () => externalAuth().issuers, calls, now });
  const { caughtUp, readOnly = false } = options;
  const authenticator = new AccountAuthenticator({
    accessTokens,
    external,
    apiKeys: new ApiKeyVerifier({ calls, secret: keys.tokenHashes, limits, caughtUp, now, log, readOnly }),
    calls,
    caughtUp,
    now,
  });
  const signIns = new SignIns({ parts, providers: () => externalAuth().providers, log });
  const admins = new AdminAccounts(parts);
  const secondFactor = new SecondFactor(parts, { appName: () => appName });
  const passkeys = new Passkeys(parts, { appName: () => appName, publicUrl: options.publicUrl });
  const sweeper = readOnly ? null : createSweeper({ calls, policy: currentPolicy, now, log });
  return {
    authenticator,
    admins,
    sessions: new Impersonation(parts),
    actions: new Map([
      ...new Map([...ownActions(new OwnAccountActions(parts)), ...linkActions(new Links(parts, signIns))]),
      ...secondFactor.actions(),
      ...passkeys.actions(),
      ...apiKeyActions(parts, keys.tokenHashes),
      ...userActions(parts),
      ...administratorActions(parts, admins),
    ]),
    routes: authRoutes({
      accounts: new UserAccounts(parts),
      mailAccounts: new MailAccounts(parts),
      adminAccounts: admins,
      secondFactor,
      passkeys,
      async sessionOf(token, client) {
        const verified = await authenticator.verify(token, `address ${addressKey(client)}`);
        if (verified.ok) return verified.identity.sessionId;
        // Not ignored: an anonymous user would lose its data.
        if (verified.error === "access token expired") throw new ServiceError("invalid_token");
        return null;
      },
      sessionNamedBy: (token) => authenticator.sessionNamedBy(token),
      signIns,
      oauth: (requester, onFinish) =>
        oauthRoutes({ signIns, requester, onFinish, originOf: options.originOf ?? options.publicUrl }),
      clientOf: options.clientOf,
      ...(options.onAnswer && { onAnswer: options.onAnswer }),
    }),
    async configure(change) {
      const templates = await loadTemplates(change.templatesDir, change.mailTexts);
      redirects.allow(change.redirectUrls);
      Object.assign(currentPolicy, change.policy);
      limits.use(change.rateLimits);
      const before = outbox;
      if (change.mailer !== undefined) {
        mailer = change.mailer;
        outbox = mailer === null ? null : new Outbox({ mailer, log });
      }
      appName = change.appName;
      mail.use({ outbox, templates, appName });
      if (before !== outbox) await before?.[Symbol.asyncDispose]();
    },
    previewMail({ kind, text }) {
      return Promise.try(() => mail.sample(kind, { to: SAMPLE_ADDRESS, text, link: accountPage() }));
    },
    async sendTestMail(to, template) {
      const email = normalizedEmail(to);
      if (email === null) throw new ServiceError("invalid_email");
      if (mailer === null) throw new UserError("mail_disabled", "This server cannot send mail");
      const text = "This is a test mail sent by an administrator.";
      const sent = template === undefined
        ? { to: email, subject: "Test mail", text, html: `<p>${text}</p>` }
        : mail.sample(template.kind, { to: email, text: template.text, link: accountPage() });
      try {
        await mailer.send(sent);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new UserError("mail_failed", `The mail server rejected the mail: ${reason}`);
      }
    },
    async sendMail(mail) {
      if (mailer === null) throw new UserError("mail_disabled", "This server cannot send mail");
      await mailer.send(mail);
    },
    get mailTrouble() {
      return outbox?.trouble ?? null;
    },
    async setupLink() {
      const token = await admins.issueSetupToken();
      return token === null ? null : `${options.publicUrl()}${DASHBOARD_PAGE}#svc_setup_token=${token}`;
    },
    applyCommits: (entries) => authenticator.applyCommits(entries),
    recheckSessions() {
      authenticator.recheck().catch((error) => log("error", "Cannot look up sessions again", { error }));
    },
    sweep: () => sweeper?.run() ?? Promise.resolve(),
    async mailSettled() {
      await mail.settled();
      await outbox?.settled();
    },
    async [Symbol.asyncDispose]() {
      await options.externalAuth?.[Symbol.asyncDispose]();
      await sweeper?.[Symbol.asyncDispose]();
      await mail.settled();
      await outbox?.[Symbol.asyncDispose]();
    },
  };
}

function ownActions(own: OwnAccountActions): ReadonlyMap<string, MainAction> {
  return new Map([
    [
      "_auth:changePassword",
      mainAction(changePasswordArgs, (args, identity) => own.changePassword(args, identity)),
    ],
    ["_auth:changeEmail", mainAction(changeEmailArgs, (args, identity) => own.changeEmail(args, identity))],
  ]);
}

function linkActions(links: Links): ReadonlyMap<string, MainAction> {
  return new Map([
    ["_auth:startLink", mainAction(startLinkArgs, (args, identity) => links.start(args, identity))],
    ["_auth:linkIdentity", mainAction(linkIdentityArgs, (args, identity) => links.finish(args, identity))],
    [
      "_auth:unlinkIdentity",
      mainAction(unlinkIdentityArgs, (args, identity) => links.unlink(args, identity)),
    ],
  ]);
}
