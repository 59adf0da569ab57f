/** The mailer port and its two implementations: SMTP, and printing for development. */
import type { Transporter } from "nodemailer";
import { authLimits } from "../limits.ts";

/** A mail as text and HTML. */
export interface Mail {
  /** Normalized address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** Sends a mail. Rejects on failure; `permanent` on the error means that a retry is useless. */
export interface Mailer extends Disposable {
  send(mail: Mail): Promise<void>;
}

/** A mail could not be sent. */
export class MailError extends Error {
  override readonly name = "MailError";
  /** Whether the mail server rejected this mail permanently. */
  readonly permanent: boolean;

  constructor(
    message: string,
    { permanent, cause }: { readonly permanent: boolean; readonly cause?: unknown },
  ) {
    super(message, { cause });
    this.permanent = permanent;
  }
}

export interface SmtpOptions {
  /** `smtp://user:password@host:587` (STARTTLS if offered) or `smtps://…` (implicit TLS). */
  readonly url: string;
  /** Sender, such as `App <no-reply@example.com>`. */
  readonly from: string;
  /** Loads the SMTP library; for tests. */
  readonly load?: () => Promise<Pick<typeof import("nodemailer"), "createTransport">>;
}

/** Returns an SMTP mailer. Throws `TypeError` for an invalid URL. */
export function smtpMailer({ url, from, load = () => import("nodemailer") }: SmtpOptions): Mailer {
  const parsed = URL.parse(url);
  if (parsed === null || !/^smtps?:$/.test(parsed.protocol) || parsed.hostname === "") {
    // Do not show the URL: it may contain a password.
    throw new TypeError(
      "Invalid mail server URL: expected smtp://user:password@mail.example.com:587",
    );
  }
  const secure = parsed.protocol === "smtps:";
  const [user, pass] = [decodeURIComponent(parsed.username), decodeURIComponent(parsed.password)];
  const options = {
    host: parsed.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: parsed.port === "" ? (secure ? 465 : 587) : Number(parsed.port),
    secure,
    // Passwords are only sent encrypted, except to this machine.
    requireTLS: !secure && user !== "" && !isLoopback(parsed.hostname),
    ...(user !== "" && { auth: { user, pass } }),
    connectionTimeout: authLimits.mailTimeoutMs,
    greetingTimeout: authLimits.mailTimeoutMs,
    socketTimeout: authLimits.mailTimeoutMs,
    dnsTimeout: authLimits.mailTimeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  // Loaded with the first mail, so that it does not delay the start.
  let transport: Promise<Transporter> | null = null;
  const open = async () => {
    try {
      return (await load()).createTransport(options);
    } catch (error) {
      // The next mail retries the import.
      transport = null;
      throw error;
    }
  };
  return {
    async send(mail) {
      try {
        await (await (transport ??= open())).sendMail({ from, ...mail, to: { name: "", address: mail.to } });
      } catch (cause) {
        const status = (cause as { responseCode?: unknown }).responseCode;
        const code = (cause as { code?: unknown }).code;
        // A 5xx reply to the recipient or message is final. After a failed login a retry makes sense, because the operator may fix it.
        const permanent = typeof status === "number" && status >= 500 && code !== "EAUTH";
        throw new MailError(cause instanceof Error ? cause.message : String(cause), { permanent, cause });
      }
    },
    [Symbol.dispose]: () => void transport?.then((opened) => opened.close(), () => {}),
  };
}

/** Returns a mailer that prints mails, for development without a mail server. */
export function printingMailer(print: (text: string) => void): Mailer {
  return {
    send({ to, subject, text }) {
      const body = text.trimEnd().split("\n").map((line) => `  | ${line}`.trimEnd()).join("\n");
      print(`Mail to ${to}: ${subject}\n${body}\n`);
      return Promise.resolve();
    },
    [Symbol.dispose]: () => {},
  };
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname);
}
