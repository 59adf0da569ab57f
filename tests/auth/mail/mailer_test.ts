import assert from "node:assert/strict";
import { MailError, printingMailer, smtpMailer } from "../../../mod/auth/mail/mailer.ts";
import { startSmtpServer } from "./smtp_server.ts";

const mail = { to: "jöhn@example.com", subject: "Grüße", text: "Code 123456", html: "<b>Code 123456</b>" };
const from = "Täst App <no-reply@example.com>";

Deno.test("an email arrives at the mail server with sender, recipient, subject, text and HTML", async () => {
  await using server = await startSmtpServer();
  using mailer = smtpMailer({ url: `smtp://127.0.0.1:${server.port}`, from });
  await mailer.send(mail);
  const [received] = server.mails;
  assert.equal(received?.from?.address, "no-reply@example.com");
  assert.equal(received?.from?.name, "Täst App");
  assert.equal(received?.to?.[0]?.address, "jöhn@example.com");
  assert.equal(received?.subject, "Grüße");
  assert.equal(received?.text?.trim(), "Code 123456");
  assert.match(received?.html ?? "", /<b>Code 123456<\/b>/);
});

Deno.test("user and password of the mail server are decoded from the URL", async () => {
  const logins: unknown[] = [];
  await using server = await startSmtpServer({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth(auth, _session, callback) {
      logins.push([auth.username, auth.password]);
      callback(null, { user: "u" });
    },
  });
  using mailer = smtpMailer({ url: `smtp://us%40er:p%2Fw@127.0.0.1:${server.port}`, from });
  await mailer.send(mail);
  assert.deepEqual(logins, [["us@er", "p/w"]]);
});

Deno.test("a refused login is worth another try, a refused recipient is not", async () => {
  await using closed = await startSmtpServer({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: (_auth, _session, callback) => callback(new Error("wrong")),
  });
  using login = smtpMailer({ url: `smtp://user:password@127.0.0.1:${closed.port}`, from });
  await assert.rejects(login.send(mail), (error) => error instanceof MailError && !error.permanent);
  await using picky = await startSmtpServer({
    onRcptTo: (_address, _session, callback) => callback(new Error("no such user")),
  });
  using recipient = smtpMailer({ url: `smtp://127.0.0.1:${picky.port}`, from });
  await assert.rejects(recipient.send(mail), (error) => error instanceof MailError && error.permanent);
});

Deno.test("an unavailable mail server is retried", async () => {
  const server = await startSmtpServer();
  await server[Symbol.asyncDispose]();
  using mailer = smtpMailer({ url: `smtp://127.0.0.1:${server.port}`, from });
  await assert.rejects(mailer.send(mail), (error) => error instanceof MailError && !error.permanent);
});

Deno.test("if the SMTP client cannot be loaded, the next email loads it again", async () => {
  await using server = await startSmtpServer();
  let loads = 0;
  const load = () => ++loads === 1 ? Promise.reject(new TypeError("not there")) : import("nodemailer");
  using mailer = smtpMailer({ url: `smtp://127.0.0.1:${server.port}`, from, load });
  await assert.rejects(mailer.send(mail), (error) => error instanceof MailError && !error.permanent);
  await mailer.send(mail);
  await mailer.send(mail);
  assert.deepEqual([server.mails.length, loads], [2, 2]);
});

Deno.test("an invalid mail server URL prevents the start, and the error omits its password", () => {
  for (const url of ["", "mail.example.com", "http://user:secret@mail.example.com", "smtp://"]) {
    assert.throws(
      () => smtpMailer({ url, from }),
      (error) => error instanceof TypeError && !error.message.includes("secret@"),
    );
  }
});

Deno.test("without a mail server the email is printed in development", async () => {
  const printed: string[] = [];
  using mailer = printingMailer((text) => printed.push(text));
  await mailer.send({ ...mail, text: "First line\n\nCode 123456\n" });
  assert.deepEqual(printed, ["Mail to jöhn@example.com: Grüße\n  | First line\n  |\n  | Code 123456\n"]);
});
