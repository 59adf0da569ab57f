/** A real mail server for tests, which stores received mails. */
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import PostalMime, { type Email } from "postal-mime";
import { Buffer } from "node:buffer";

export interface TestSmtpServer extends AsyncDisposable {
  readonly port: number;
  readonly mails: Email[];
  /** Resolves to the newest mail to an address when `count` of them have arrived. */
  mailTo(address: string, count?: number): Promise<Email>;
}

/** Starts a server on a free port of this machine, without TLS. */
export async function startSmtpServer(
  { port = 0, ...options }: SMTPServerOptions & { readonly port?: number } = {},
): Promise<TestSmtpServer> {
  const mails: Email[] = [];
  const arrivals = new EventTarget();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    logger: false,
    onData(stream, _session, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", async () => {
        mails.push(await PostalMime.parse(Buffer.concat(chunks)));
        callback();
        arrivals.dispatchEvent(new Event("mail"));
      });
    },
    ...options,
  });
  // A disconnecting client is not an error of the test.
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", () => resolve()));
  const address = server.server.address();
  if (address === null || typeof address === "string") throw new TypeError("The mail server has no port");
  const to = (email: string) =>
    mails.filter((mail) => mail.to?.some((recipient) => recipient.address === email));
  return {
    port: address.port,
    mails,
    async mailTo(email, count = 1) {
      while (to(email).length < count) {
        await new Promise((resolve) => arrivals.addEventListener("mail", resolve, { once: true }));
      }
      const mail = to(email).at(-1);
      if (mail === undefined) throw new RangeError("Cannot wait for less than one mail");
      return mail;
    },
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
