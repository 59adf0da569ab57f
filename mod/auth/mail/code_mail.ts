/** Creates and sends mails: with codes and links, which are stored, and about new devices. */
import type { Log } from "../../kit/log.ts";
import { authLimits } from "../limits.ts";
import { type CodeKind, codeLifetimeMs, issueCode, linkFragment } from "../tokens/codes.ts";
import type { NewCode } from "../isolate_functions/code_rows.ts";
import type { Outbox } from "./outbox.ts";
import type { Mail } from "./mailer.ts";
import { renderMail, templateOf, type Templates } from "./templates.ts";
import { svcState, withFragment } from "../redirects.ts";
import type { TokenHasher } from "../tokens/token_hash.ts";
import type { MailKind } from "./built_in_templates.ts";

export interface CodeMailOptions {
  readonly hasher: TokenHasher;
  /** `null` if mail cannot be sent. */
  readonly outbox: Outbox | null;
  readonly templates: Templates;
  readonly appName: string;
  readonly now: () => number;
  readonly log: Log;
}

export interface CodeMailRequest {
  readonly kind: CodeKind;
  /** Normalized. */
  readonly email: string;
  /** URL the link opens. */
  readonly redirect: string;
  /** Added to the link, for the client that asked for the mail. */
  readonly appState?: string | undefined;
  readonly template?: MailKind;
  /** Stores the code. Resolves to whether to send the mail. */
  readonly store: (code: NewCode) => Promise<boolean>;
}

/** Sends codes. */
export class CodeMail {
  #options: CodeMailOptions;
  /** Answered requests that are still processed in the background. */
  readonly #working = new Set<Promise<void>>();
  /** Mails requested without a mail server since the last log line, and the time of that line. */
  #undelivered = 0;
  #undeliveredLoggedAt = -Infinity;

  constructor(options: CodeMailOptions) {
    this.#options = options;
  }

  use(changed: Pick<CodeMailOptions, "outbox" | "templates" | "appName">): void {
    this.#options = { ...this.#options, ...changed };
  }

  get enabled(): boolean {
    return this.#options.outbox !== null;
  }

  /** Sends a code in the background, so that timing reveals no account. Returns false if too many are in progress. */
  start(request: CodeMailRequest): boolean {
    if (this.#working.size >= authLimits.mailRequestsMax) return false;
    const working = this.send(request).then(() => {}, (error) => {
      this.#options.log("error", "Cannot prepare mail", { kind: request.kind, error });
    }).finally(() => this.#working.delete(working));
    this.#working.add(working);
    return true;
  }

  /** Sends a code. Resolves to whether a mail was needed, once the code is stored and the mail queued. */
  async send({ kind, email, redirect, appState, template = kind, store }: CodeMailRequest): Promise<boolean> {
    const { hasher, outbox, templates, appName, now } = this.#options;
    if (outbox === null) return this.#undeliverable(kind);
    const { code, token, codeHash, tokenHash } = issueCode(hasher, { kind, email });
    const expiresAt = now() + codeLifetimeMs[kind];
    if (!await store({ kind, email, codeHash, tokenHash, expiresAt })) return false;
    const mail = renderMail(templates[template], {
      app: appName,
      email,
      link: withFragment(redirect, { [linkFragment[kind]]: token, ...svcState(appState) }),
      code,
      validFor: spelledDuration(codeLifetimeMs[kind]),
    });
    outbox.post(mail, { usefulUntil: expiresAt });
    return true;
  }

  /** Mails an account about a sign-in from a new device. Does nothing without a mail server; failures are only logged. */
  reportDevice(
    { email, device, at }: { readonly email: string; readonly device: string; readonly at: number },
  ): void {
    const { outbox, templates, appName: app } = this.#options;
    const mail = renderMail(templates.device, { app, email, device, time: new Date(at).toUTCString() });
    outbox?.post(mail, { usefulUntil: at + authLimits.deviceMailMs });
  }

  /** Renders a mail with sample values. Throws `TemplateError` for an unusable template. */
  sample(
    kind: MailKind,
    { to, text, link }: { readonly to: string; readonly text: string | undefined; readonly link: string },
  ): Mail {
    const { templates, appName: app, now } = this.#options;
    const template = text === undefined ? templates[kind] : templateOf(kind, text);
    if (kind === "device") {
      const time = new Date(now()).toUTCString();
      return renderMail(template, { app, email: to, device: "Firefox on Windows", time });
    }
    const codeKind = kind === "change" ? "verify" : kind;
    return renderMail(template, {
      app,
      email: to,
      link: withFragment(link, { [linkFragment[codeKind]]: "sample" }),
      code: "123456",
      validFor: spelledDuration(codeLifetimeMs[codeKind]),
    });
  }

  /** Logs mails requested without a mail server, because the requester always gets the same response. */
  #undeliverable(kind: CodeKind): false {
    const { now, log } = this.#options;
    this.#undelivered++;
    if (now() - this.#undeliveredLoggedAt >= authLimits.noMailLogMs) {
      this.#undeliveredLoggedAt = now();
      log("warn", "Mail requested but not sent: no mail server configured (--smtp-url)", {
        code: "mail",
        kind,
        askedFor: this.#undelivered,
      });
    }
    return false;
  }

  /** Resolves when no request is being processed. */
  async settled(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working);
  }
}

function spelledDuration(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  return minutes % 60 === 0 ? plural(minutes / 60, "hour") : plural(minutes, "minute");
}

function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
