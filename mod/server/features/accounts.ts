/** Accounts: wires the account service to this server's configuration. */
import {
  type AccountService,
  type AdminAnswer,
  AdminChannel,
  AuthConfigError,
  callbackOf,
  ConfiguredExternalAuth,
  createAccounts,
  type LoadedSecret,
  loadTemplates,
  type Mailer,
  presetParts,
  printingMailer,
  type ProviderCheck,
  runAdminCommand,
  secretKeyFile,
  smtpMailer,
  type SmtpOptions,
  TemplateError,
} from "../../auth/mod.ts";
import { type AccountsConfig, isFollower } from "../../config/config.ts";
import type { OptionName } from "../../config/options.ts";
import { ServiceError, UserError } from "../../errors.ts";
import { anonymous } from "../../functions/identity.ts";
import { decryptSecret } from "../../kit/secret_encryption.ts";
import type { Metrics } from "../../ops/metrics/mod.ts";
import { StartError } from "../../config/start_error.ts";
import { localOrigin } from "../http/request_gate.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export interface AccountsFeature extends
  Feature,
  Pick<
    AccountService,
    "authenticator" | "sessions" | "setupLink" | "sendTestMail" | "previewMail" | "sendMail" | "mailTrouble"
  > {
  /** Identity providers in use, and the origin of their callback addresses if it is configured. */
  providers(): { readonly names: readonly string[]; readonly publicUrl: string | null };
  /** Tests an identity provider as configured. Throws `not_found`. */
  testProvider(provider: { readonly name: string; readonly origin: string }): Promise<ProviderCheck>;
  /** Validates a configuration. Rejects with the reason. */
  tryOut(config: AccountsConfig): Promise<void>;
  configure(config: AccountsConfig): Promise<void>;
  /** Applies the configuration of identity providers and token issuers. */
  configureExternalAuth(config: Pick<AccountsConfig, "authConfig">): Promise<void>;
}

const KEY_REPLACED =
  `${secretKeyFile} was missing, so a new key was created: all users are signed out, signed URLs ` +
  "no longer work, and secrets in the settings must be entered again. Passwords are not affected. Second factors no " +
  "longer match: remove them with `syncline admin remove-factors` or in the dashboard";

const NO_MAIL =
  "No mail server is configured (--smtp-url): sign-in by mail is not offered and passwords cannot be reset";

/** Throws a `StartError` if the mail server, a template or the providers file cannot be used. */
export async function startAccounts(
  context: FeatureContext,
  { secret, metrics }: { readonly secret: LoadedSecret; readonly metrics: Metrics | null },
): Promise<AccountsFeature> {
  const { config: { dataDir }, host, log } = context;
  if (secret.wasReadableByOthers) {
    log("warn", `${secretKeyFile} was readable by other users of this machine; its mode was corrected`);
  }
  if (context.config.accounts.smtp === null && !context.config.dev) log("info", NO_MAIL);
  const externalAuth = await openExternalAuth(context);
  const service = await openAccounts(context, { externalAuth, metrics });
  let channel: AdminChannel | undefined;
  let { smtp } = context.config.accounts;
  return {
    authenticator: service.authenticator,
    sessions: service.sessions,
    setupLink: () => service.setupLink(),
    sendTestMail: (to, mail) => service.sendTestMail(to, mail).catch(asUserError),
    previewMail: (mail) => service.previewMail(mail).catch(asUserError),
    sendMail: (mail) => service.sendMail(mail),
    get mailTrouble() {
      return service.mailTrouble;
    },
    providers: () => ({
      names: [...externalAuth.externalAuth.providers.keys()],
      publicUrl: context.config.publicUrl,
    }),
    async testProvider({ name, origin }) {
      const callback = callbackOf(context.config.publicUrl ?? new URL(origin).origin, name);
      const check = await externalAuth.check(name, callback).catch(asUserError);
      if (check === null) throw new ServiceError("not_found", `There is no provider "${name}"`);
      return check;
    },
    async tryOut(changed) {
      await loadTemplates(changed.templatesDir, changed.mailTexts);
      await externalAuth.tryOut(changed.authConfig);
      using _mailer = mailerOf({ smtp: changed.smtp, dev: false });
    },
    async configure(changed) {
      const same = sameMail(changed.smtp, smtp);
      const mailer = same ? undefined : mailerOf({ smtp: changed.smtp, dev: context.config.dev });
      await service.configure({ ...changed, mailer, appName: appNameOf(changed, context) });
      smtp = changed.smtp;
    },
    configureExternalAuth: ({ authConfig }) => externalAuth.use(authConfig),
    routes: [{ at: "/api/auth", app: service.routes }],
    actions: service.actions,
    applyCommits: (entries) => service.applyCommits(entries),
    reload: () => service.recheckSessions(),
    async start() {
      // An empty database has no users to warn about.
      if (secret.created && host.ts > 0) log("warn", KEY_REPLACED);
      channel = await AdminChannel.open({
        dataDir,
        run: (command) =>
          command.command === "call"
            ? callForOperator(context, command)
            : runAdminCommand(service.admins, command),
        log,
      });
    },
    async [Symbol.asyncDispose]() {
      await channel?.[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}

/** Calls a function for the command line, which authenticates by access to the local socket. */
async function callForOperator(
  { host, port, log }: FeatureContext,
  { path, args }: { readonly path: string; readonly args: Record<string, unknown> },
): Promise<AdminAnswer> {
  const call = { udfPath: path, args, identity: anonymous, origin: "system" } as const;
  const kind = host.info(path)?.kind ?? "action";
  log("info", "Function called from the command line", { path });
  const outcome = kind === "query"
    ? await port.query(call)
    : kind === "mutation"
    ? (await port.mutate(call)).outcome
    : await port.act(call);
  return outcome.ok
    ? { kind: "result", value: JSON.parse(outcome.value) }
    : { kind: "refused", message: outcome.error.message };
}

/** Converts an error of the configuration to one that administrators see. */
function asUserError(error: unknown): never {
  if (error instanceof TemplateError || error instanceof AuthConfigError) {
    throw new UserError("invalid_setting", error.message, { name: null });
  }
  throw error;
}

async function openAccounts(
  { config, keys, port, clientOf, caughtUp, log, url }: FeatureContext,
  { externalAuth, metrics }: {
    readonly externalAuth: ConfiguredExternalAuth;
    readonly metrics: Metrics | null;
  },
): Promise<AccountService> {
  const { policy, accessTokenMs, redirectUrls, smtp, templatesDir, mailTexts, rateLimits } = config.accounts;
  const publicUrl = config.publicUrl ?? url;
  try {
    return await createAccounts({
      keys,
      port,
      policy,
      accessTokenMs,
      redirectUrls,
      dev: config.dev,
      publicUrl: () => publicUrl,
      mailer: mailerOf({ smtp, dev: config.dev }),
      templatesDir,
      mailTexts,
      appName: appNameOf(config.accounts, { config, url }),
      rateLimits,
      hashesAtOnce: config.memory.hashesAtOnce,
      clientOf,
      readOnly: isFollower(config),
      caughtUp,
      externalAuth,
      originOf: (c) => config.publicUrl ?? localOrigin(c.req.raw, url),
      ...(metrics && { onAnswer: (operation, status) => metrics.countAuth(operation, status) }),
      log,
    });
  } catch (error) {
    await externalAuth[Symbol.asyncDispose]();
    if (error instanceof TemplateError || error instanceof TypeError) {
      throw new StartError(error.message, { cause: error });
    }
    throw error;
  }
}

/** Opens the providers and issuers of `--auth-config` or the settings. */
async function openExternalAuth({ config, keys, log }: FeatureContext): Promise<ConfiguredExternalAuth> {
  try {
    return await ConfiguredExternalAuth.open(config.accounts.authConfig, {
      env: (name) => Deno.env.get(name),
      unseal: (sealed) =>
        decryptSecret(sealed, { key: keys.settings, name: "authConfig" satisfies OptionName }),
      parts: presetParts({ now: Date.now }),
      log,
    });
  } catch (error) {
    if (error instanceof AuthConfigError) throw new StartError(error.message, { cause: error });
    throw error;
  }
}

function mailerOf(
  { smtp, dev }: { readonly smtp: SmtpOptions | null; readonly dev: boolean },
): Mailer | null {
  return smtp !== null ? smtpMailer(smtp) : dev ? printingMailer(print) : null;
}

export function appNameOf(
  { appName }: Pick<AccountsConfig, "appName">,
  { config, url }: Pick<FeatureContext, "config" | "url">,
): string {
  return appName ?? new URL(config.publicUrl ?? url).host;
}

function sameMail(a: SmtpOptions | null, b: SmtpOptions | null): boolean {
  return a?.url === b?.url && a?.from === b?.from;
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`\n${text}\n`));
}
