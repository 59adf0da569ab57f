/** Sections, labels and presentation of settings. */
import type { SettingView } from "../../../mod/ops/admin/isolate_functions/settings.ts";

/** The connection test offered with a section. */
type SectionTest = "mail" | "backupTarget" | "locations" | "alerts";

interface SectionSpec {
  /** Part of the section's address. */
  readonly name: string;
  readonly title: string;
  readonly text: string;
  /** Further words that find it in the command palette. */
  readonly words?: string;
  /** Matches the names of its settings. */
  readonly settings: RegExp;
  readonly test?: SectionTest;
}

export interface Section extends Omit<SectionSpec, "settings"> {
  readonly settings: readonly SettingView[];
}

const SECTIONS: readonly SectionSpec[] = [
  {
    name: "app",
    title: "App",
    text: "Name and addresses of the app, and the name of this environment in the sidebar.",
    settings: /^(appName|authRedirectUrl|environment.*)$/,
  },
  {
    name: "accounts",
    title: "Accounts",
    text: "Sign-up, sign-in and its rate limits.",
    settings: /^(anonymous|disable|require|rateLimits|userKeys)/,
  },
  {
    name: "providers",
    title: "Sign-in providers",
    text: "",
    words: "add google github microsoft apple gitlab discord oauth oidc openid login",
    settings: /^authConfig$/,
  },
  {
    name: "mail",
    title: "Mail",
    text: "The mail server and the sender.",
    settings: /^(smtp|mailFrom)/,
    test: "mail",
  },
  {
    name: "templates",
    title: "Mail templates",
    text: "Texts of the mails to users. Empty: the built-in text.",
    settings: /^mail/,
  },
  {
    name: "alerts",
    title: "Alerts",
    words:
      "set alert notify webhook slack discord email age of backups error rate latency disk space certificate " +
      "replication lag cron",
    text: "Recipients of messages about issues of the overview, when they begin and when they end.",
    settings: /^alert/,
    test: "alerts",
  },
  {
    name: "backups",
    title: "Scheduled backups",
    text: "Interval, target and number of backups.",
    settings: /^backup/,
    test: "backupTarget",
  },
  {
    name: "storage",
    title: "Object storage",
    text:
      "Access to the S3-compatible service for scheduled backups, which takes effect immediately. Files and replicas use " +
      "the flags or environment variables with which the server was started.",
    settings: /^s3/,
    test: "locations",
  },
  { name: "log", title: "Execution log", text: "Retention of runs and their log lines.", settings: /^log/ },
  { name: "others", title: "Others", text: "", settings: /./ },
];

/** Assigns each setting to the first section that matches. Omits empty sections. */
export function sectionsOf(settings: readonly SettingView[]): readonly Section[] {
  const nameOf = (setting: string) => SECTIONS.find((section) => section.settings.test(setting))?.name;
  return SECTIONS.map(({ settings: _, ...section }) => ({
    ...section,
    settings: settings.filter(({ name }) => nameOf(name) === section.name)
      .toSorted((a, b) => positionOf(a.name) - positionOf(b.name)),
  })).filter((section) => section.settings.length > 0);
}

/** Settings are in the order of their wordings, unknown ones last. */
function positionOf(setting: string): number {
  const position = Object.keys(WORDINGS).indexOf(setting);
  return position < 0 ? Object.keys(WORDINGS).length : position;
}

interface Wording {
  readonly label: string;
  /** Default: the description of the option. */
  readonly description?: string;
  /** Whether a switch is shown as its opposite, so that "on" allows something. */
  readonly inverted?: boolean;
  /** Values to choose from. */
  readonly choices?: readonly string[];
  /** Whether it has no effect without a mail server. */
  readonly needsMail?: boolean;
}

const WORDINGS: Readonly<Record<string, Wording>> = {
  appName: { label: "App name" },
  authRedirectUrl: {
    label: "App URLs",
    description: "URLs that mail links and sign-in redirects may use, including paths below them. " +
      "The first one is the default.",
  },
  environmentName: { label: "Environment" },
  environmentColor: { label: "Environment color", choices: ["gray", "blue", "green", "yellow", "red"] },
  disableSignups: {
    label: "Allow sign-ups",
    description: "Anyone can create an account. Otherwise only administrators create users.",
    inverted: true,
  },
  disableMagicLink: {
    label: "Allow sign-in by mail",
    description: "Users can sign in with a link that is mailed to them.",
    inverted: true,
    needsMail: true,
  },
  disableDeviceMail: {
    label: "Mail about new devices",
    description: "Accounts get a mail when they sign in from a device for the first time.",
    inverted: true,
    needsMail: true,
  },
  disableTotp: {
    label: "Allow authenticator apps",
    description: "Users can set one up as a second factor. Otherwise existing ones are still required.",
    inverted: true,
  },
  disablePasskeys: {
    label: "Allow passkeys",
    description: "Users can add passkeys. Otherwise existing ones still sign in.",
    inverted: true,
  },
  anonymousSignIn: { label: "Allow anonymous users" },
  anonymousUserTtl: { label: "Lifetime of anonymous users" },
  userKeys: {
    label: "Functions for API keys of users",
    description: "Functions that API keys of users may call, such as tasks:*. Empty: users create no keys.",
  },
  rateLimits: {
    label: "Rate limits",
    description: "Rate limits of the auth endpoints, as name=burst/perMinute.",
  },
  requireVerification: {
    label: "Require a verified email address",
    description: "Users sign in only after they have confirmed their email address.",
  },
  authConfig: {
    label: "Sign-in providers as JSON",
    description: "The providers above, and trusted token issuers.",
  },
  smtpUrl: { label: "Mail server", description: "The SMTP server that sends the mails." },
  mailFrom: { label: "Sender" },
  mailVerify: { label: "Verification" },
  mailReset: { label: "Password reset" },
  mailMagic: { label: "Sign-in link" },
  mailChange: { label: "Address change" },
  mailDevice: { label: "New device" },
  mailTemplates: { label: "Template folder" },
  alertMail: { label: "Email addresses", description: "Addresses that receive alerts." },
  alertWebhook: {
    label: "Webhooks",
    description:
      "URLs that receive JSON. Write slack:URL or discord:URL for services that accept their messages.",
  },
  alertQuietHours: {
    label: "Quiet hours",
    description:
      "Alerts wait until these times end, such as 22:00-07:00 Europe/Berlin. UTC without a time zone.",
  },
  alertWhen: {
    label: "Thresholds",
    description: "When a condition becomes an issue: shares such as 5%, times such as 2s, 30m or 2d.",
  },
  backupEvery: { label: "Interval" },
  backupKeep: { label: "Backups kept" },
  backupTo: { label: "Target" },
  s3Endpoint: { label: "Endpoint" },
  s3Region: { label: "Region" },
  s3AccessKeyId: { label: "Access key ID" },
  s3SecretAccessKey: { label: "Secret access key" },
  logKeep: { label: "Retention" },
  logArgs: { label: "Log arguments" },
};

/** Turns a name in code, such as `logBytes`, into words. */
export function wordsOf(name: string): string {
  const words = name.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function labelOf(name: string): string {
  return WORDINGS[name]?.label ?? wordsOf(name);
}

/** Replaces the flags in an error of the server with the labels of their settings. */
export function withLabels(error: string): string {
  return error.replaceAll(/(pass )?--([a-z0-9-]+)/g, (text, pass: string | undefined, flag: string) => {
    const label = WORDINGS[flag.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]?.label;
    return label === undefined ? text : `${pass === undefined ? "" : "set "}“${label}”`;
  });
}

export function descriptionOf({ name, description }: SettingView): string {
  return WORDINGS[name]?.description ?? `${description}.`;
}

export function isInverted(name: string): boolean {
  return WORDINGS[name]?.inverted === true;
}

/** Returns the values to choose from, or `undefined` if others are possible. */
export function choicesOf(name: string): readonly string[] | undefined {
  return WORDINGS[name]?.choices;
}

/** Whether a setting has no effect without a mail server. */
export function needsMail(name: string): boolean {
  return WORDINGS[name]?.needsMail === true;
}
