/** Mails with codes and links: made, stored as hashes, and posted. */
import type { Log } from "../../kit/log.ts";
import { authLimits } from "../limits.ts";
import { type CodeKind, codeLifetimeMs, issueCode, linkFragment } from "../tokens/codes.ts";
import type { NewCode } from "../isolate_functions/code_rows.ts";
import type { Outbox } from "./outbox.ts";
import type { Mail } from "./mailer.ts";
import { renderMail, templateOf, type Templates } from "./templates.ts";
import { withFragment } from "../redirects.ts";
import type { TokenHasher } from "../tokens/token_hash.ts";
import type { MailKind } from "./built_in_templates.ts";

export interface CodeMailOptions {
  readonly hasher: TokenHasher;
  /** `null`: no mail can be sent. */
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
  /** URL the link leads to. */
  readonly redirect: string;
  readonly template?: MailKind;
  /** Stores the code; resolves to whether the mail is to be sent. */
  readonly store: (code: NewCode) => Promise<boolean>;
}

/** Sends codes. */
export class CodeMail {
  #options: CodeMailOptions;
  /** Requests that were answered and are still being worked on. */
  readonly #working = new Set<Promise<void>>();
  /** Mails that were asked for without a mail server, and when the log last said so. */
  #undelivered = 0;
  #undeliveredToldAt = -Infinity;

  constructor(options: CodeMailOptions) {
    this.#options = options;
  }

  /** From now on mails are made and posted so. */
  use(changed: Pick<CodeMailOptions, "outbox" | "templates" | "appName">): void {
    this.#options = { ...this.#options, ...changed };
  }

  /** Whether mail can be sent at all. */
  get enabled(): boolean {
    return this.#options.outbox !== null;
  }

  /**
   * Starts sending a code and returns at once: how long it takes, which depends on whether there is such an account, is
   * nothing a requester sees. Returns false when too many are under way.
   */
  start(request: CodeMailRequest): boolean {
    if (this.#working.size >= authLimits.mailRequestsMax) return false;
    const working = this.send(request).then(() => {}, (error) => {
      this.#options.log("error", "A mail could not be prepared", { kind: request.kind, error });
    }).finally(() => this.#working.delete(working));
    this.#working.add(working);
    return true;
  }

  /** Sends a code. Resolves to whether there was reason to, once it is stored and the mail is on its way. */
  async send({ kind, email, redirect, template = kind, store }: CodeMailRequest): Promise<boolean> {
    const { hasher, outbox, templates, appName, now } = this.#options;
    if (outbox === null) return this.#undeliverable(kind);
    const { code, token, codeHash, tokenHash } = issueCode(hasher, { kind, email });
    const expiresAt = now() + codeLifetimeMs[kind];
    if (!await store({ kind, email, codeHash, tokenHash, expiresAt })) return false;
    const mail = renderMail(templates[template], {
      app: appName,
      email,
      link: withFragment(redirect, { [linkFragment[kind]]: token }),
      code,
      validFor: spelledDuration(codeLifetimeMs[kind]),
    });
    outbox.post(mail, { usefulUntil: expiresAt });
    return true;
  }

  /** A mail as it would be sent, with a code and a link of nobody's. Throws `TemplateError` for a text that cannot be used. */
  sample(
    kind: MailKind,
    { to, text, link }: { readonly to: string; readonly text: string | undefined; readonly link: string },
  ): Mail {
    const { templates, appName } = this.#options;
    const codeKind = kind === "change" ? "verify" : kind;
    return renderMail(text === undefined ? templates[kind] : templateOf(kind, text), {
      app: appName,
      email: to,
      link: withFragment(link, { [linkFragment[codeKind]]: "sample" }),
      code: "123456",
      validFor: spelledDuration(codeLifetimeMs[codeKind]),
    });
  }

  /** The requester is told nothing, as always: so the operator is. */
  #undeliverable(kind: CodeKind): false {
    const { now, log } = this.#options;
    this.#undelivered++;
    if (now() - this.#undeliveredToldAt >= authLimits.noMailToldMs) {
      this.#undeliveredToldAt = now();
      log("warn", "A mail was asked for and not sent: there is no mail server (--smtp-url)", {
        kind,
        askedFor: this.#undelivered,
      });
    }
    return false;
  }

  /** Resolves when no request is being worked on. */
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
