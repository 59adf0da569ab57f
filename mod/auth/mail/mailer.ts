/** The port through which mail leaves, and its two ends: a mail server, or the terminal of a developer. */
import type { Transporter } from "nodemailer";
import { authLimits } from "../limits.ts";

/** One mail, as text and HTML. */
export interface Mail {
  /** Normalized address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** Hands mail over. Rejects when it could not; `permanent` on the error says that trying again is of no use. */
export interface Mailer extends Disposable {
  send(mail: Mail): Promise<void>;
}

/** A mail could not be handed over. */
export class MailError extends Error {
  override readonly name = "MailError";
  /** Whether the mail server refused this mail for good. */
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
  /** `smtp://user:password@host:587` (STARTTLS where the server offers it) or `smtps://…` (TLS from the start). */
  readonly url: string;
  /** Sender, such as `App <no-reply@example.com>`. */
  readonly from: string;
  /** Loads what speaks SMTP; for tests. */
  readonly load?: () => Promise<Pick<typeof import("nodemailer"), "createTransport">>;
}

/** A mailer that speaks SMTP. Throws `TypeError` for a URL that is not one. */
export function smtpMailer({ url, from, load = () => import("nodemailer") }: SmtpOptions): Mailer {
  const parsed = URL.parse(url);
  if (parsed === null || !/^smtps?:$/.test(parsed.protocol) || parsed.hostname === "") {
    // The URL may hold a password: it is not repeated.
    throw new TypeError(
      "Cannot use the mail server: give a URL such as smtp://user:password@mail.example.com:587",
    );
  }
  const secure = parsed.protocol === "smtps:";
  const [user, pass] = [decodeURIComponent(parsed.username), decodeURIComponent(parsed.password)];
  const options = {
    host: parsed.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: parsed.port === "" ? (secure ? 465 : 587) : Number(parsed.port),
    secure,
    // A password is never sent in the clear, except to this machine.
    requireTLS: !secure && user !== "" && !isLoopback(parsed.hostname),
    ...(user !== "" && { auth: { user, pass } }),
    connectionTimeout: authLimits.mailTimeoutMs,
    greetingTimeout: authLimits.mailTimeoutMs,
    socketTimeout: authLimits.mailTimeoutMs,
    dnsTimeout: authLimits.mailTimeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  // Loaded with the first mail: no start has to wait for it.
  let transport: Promise<Transporter> | null = null;
  const open = async () => {
    try {
      return (await load()).createTransport(options);
    } catch (error) {
      // The next mail tries it anew.
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
        // 5xx to the recipient or the message is final; a refused login is the operator's to mend, and then worth another try.
        const permanent = typeof status === "number" && status >= 500 && code !== "EAUTH";
        throw new MailError(cause instanceof Error ? cause.message : String(cause), { permanent, cause });
      }
    },
    [Symbol.dispose]: () => void transport?.then((opened) => opened.close(), () => {}),
  };
}

/** A mailer that prints what it would send: for development without a mail server. */
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
