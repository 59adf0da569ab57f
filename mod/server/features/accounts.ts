/** Accounts as this server is configured: secret key, mail, client addresses. */
import {
  type AccountService,
  AdminChannel,
  createAccounts,
  type LoadedSecret,
  printingMailer,
  runAdminCommand,
  secretKeyFile,
  smtpMailer,
  TemplateError,
} from "../../auth/mod.ts";
import { StartError } from "../../config/start_error.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export interface AccountsFeature
  extends Feature, Pick<AccountService, "authenticator" | "sessions" | "setupLink"> {}

const KEY_REPLACED =
  `There was no ${secretKeyFile}, so a new one was made: everyone is signed out, signed URLs handed ` +
  "out before no longer work, and secrets in the settings have to be entered again. No account is lost";

const NO_MAIL =
  "There is no mail server (--smtp-url): no mail is sent, so sign-in by mail is not offered and passwords cannot be reset";

/** Throws a `StartError` when the mail server or a template cannot be used. */
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
      ...(metrics && { onAnswer: (operation, status) => metrics.countAuth(operation, status) }),
      log,
    });
  } catch (error) {
    if (error instanceof TemplateError || error instanceof TypeError) {
      throw new StartError(error.message, { cause: error });
    }
    throw error;
  }
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`\n${text}\n`));
}
