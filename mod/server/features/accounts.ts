/** Accounts as this server is configured: secret key, mail, client addresses. */
import {
  type AccountService,
  AdminChannel,
  AuthConfigError,
  AuthConfigFile,
  createAccounts,
  type LoadedSecret,
  presetParts,
  printingMailer,
  runAdminCommand,
  secretKeyFile,
  smtpMailer,
  TemplateError,
} from "../../auth/mod.ts";
import type { ServeConfig } from "../../config/config.ts";
import type { Log } from "../../kit/log.ts";
import { StartError } from "../../config/start_error.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export interface AccountsFeature
  extends Feature, Pick<AccountService, "authenticator" | "sessions" | "setupLink"> {}

const KEY_REPLACED =
  `There was no ${secretKeyFile}, so a new one was made: everyone is signed out, signed URLs handed ` +
  "out before no longer work, and secrets in the settings have to be entered again. No account is lost";

const NO_MAIL =
  "There is no mail server (--smtp-url): no mail is sent, so sign-in by mail is not offered and passwords cannot be reset";

/** Throws a `StartError` when the mail server, a template or the file of providers cannot be used. */
export async function startAccounts(context: FeatureContext, secret: LoadedSecret): Promise<AccountsFeature> {
  const { config: { dataDir }, host, log } = context;
  // A database to which nothing was ever written has nobody to tell.
  if (secret.created && host.ts > 0) log("warn", KEY_REPLACED);
  if (secret.wasReadableByOthers) {
    log("warn", `${secretKeyFile} could be read by other users of this machine; now it cannot`);
  }
  if (context.config.accounts.smtp === null && !context.config.dev) log("info", NO_MAIL);
  const service = await openAccounts(context);
  let channel: AdminChannel | undefined;
  return {
    authenticator: service.authenticator,
    sessions: service.sessions,
    setupLink: () => service.setupLink(),
    routes: [{ at: "/api/auth", app: service.routes }],
    actions: service.actions,
    applyCommits: (entries) => service.applyCommits(entries),
    reload: () => service.recheckSessions(),
    async start() {
      channel = await AdminChannel.open({
        dataDir,
        run: (command) => runAdminCommand(service.admins, command),
        log,
      });
    },
    async [Symbol.asyncDispose]() {
      await channel?.[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}

async function openAccounts(
  { config, keys, port, clientOf, log, url, metrics }: FeatureContext,
): Promise<AccountService> {
  const { policy, accessTokenMs, redirectUrls, smtp, templatesDir, appName } = config.accounts;
  const publicUrl = config.publicUrl ?? url;
  try {
    const authConfig = await openAuthConfig(config, log);
    return await createAccounts({
      keys,
      port,
      policy,
      accessTokenMs,
      redirectUrls,
      dev: config.dev,
      publicUrl: () => publicUrl,
      mailer: smtp !== null ? smtpMailer(smtp) : config.dev ? printingMailer(print) : null,
      templatesDir,
      appName: appName ?? new URL(publicUrl).host,
      clientOf,
      ...(authConfig && { others: authConfig }),
      originOf: (c) => config.publicUrl ?? localOrigin(c.req.url, url),
      ...(metrics && { onAnswer: (operation, status) => metrics.countAuth(operation, status) }),
      log,
    });
  } catch (error) {
    if (error instanceof TemplateError || error instanceof AuthConfigError || error instanceof TypeError) {
      throw new StartError(error.message, { cause: error });
    }
    throw error;
  }
}

/** Opens the file of `--auth-config`, if there is one. */
async function openAuthConfig(config: ServeConfig, log: Log): Promise<AuthConfigFile | null> {
  const { authConfig: path } = config.accounts;
  if (path === null) return null;
  const env = (name: string) => Deno.env.get(name);
  return await AuthConfigFile.open({ path, env, parts: presetParts({ now: Date.now }), log });
}

/** Without a public URL this server is one for this machine, which has several names: the one in use is kept. */
function localOrigin(requestUrl: string, url: string): string {
  const { hostname, origin } = new URL(requestUrl);
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname) ? origin : url;
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`\n${text}\n`));
}
