/** The bounded mail queue, with retries until a mail expires. In memory only: mails contain valid tokens. */
import { authLimits } from "../limits.ts";
import type { Log } from "../../kit/log.ts";
import { type Mail, type Mailer, MailError } from "./mailer.ts";

export interface OutboxOptions {
  readonly mailer: Mailer;
  readonly log: Log;
  readonly now?: () => number;
  /** Calls back once after `delayMs`. Returns a function that cancels it. */
  readonly schedule?: (callback: () => void, delayMs: number) => () => void;
}

interface Entry {
  readonly mail: Mail;
  /** The mail is useless after this time. */
  readonly usefulUntil: number;
  failures: number;
}

/** Sends mail in the background. */
export class Outbox implements AsyncDisposable {
  readonly #mailer: Mailer;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #schedule: (callback: () => void, delayMs: number) => () => void;
  /** Mails ready to be sent, in order. */
  readonly #ready: Entry[] = [];
  /** Mails waiting for a retry, with the function that cancels the wait. */
  readonly #retries = new Map<Entry, () => void>();
  readonly #sending = new Set<Promise<void>>();
  #closed = false;
  #trouble: string | null = null;

  constructor({ mailer, log, now = Date.now, schedule = scheduleTimer }: OutboxOptions) {
    this.#mailer = mailer;
    this.#log = log;
    this.#now = now;
    this.#schedule = schedule;
  }

  /** Number of mails not sent yet. */
  get size(): number {
    return this.#ready.length + this.#retries.size + this.#sending.size;
  }

  /** Why the last mail could not be sent; `null` if it was sent or its recipient was rejected. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** Queues a mail. Returns false and logs it if the queue is full. */
  post(mail: Mail, { usefulUntil }: { readonly usefulUntil: number }): boolean {
    if (this.#closed || this.size >= authLimits.mailsQueuedMax) {
      this.#log("error", "Mail dropped: queue is full", { to: mail.to, waiting: this.size });
      return false;
    }
    this.#ready.push({ mail, usefulUntil, failures: 0 });
    this.#next();
    return true;
  }

  /** Resolves when no mail is being sent; mails waiting for a retry are ignored. */
  async settled(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const left = this.#ready.length + this.#retries.size;
    if (left > 0) this.#log("warn", "Mail not sent before shutdown", { waiting: left });
    this.#ready.length = 0;
    for (const cancel of this.#retries.values()) cancel();
    this.#retries.clear();
    await this.settled();
    this.#mailer[Symbol.dispose]();
  }

  #next(): void {
    while (this.#sending.size < authLimits.mailsAtOnceMax) {
      const entry = this.#ready.shift();
      if (!entry) return;
      const sending = this.#send(entry).finally(() => {
        this.#sending.delete(sending);
        this.#next();
      });
      this.#sending.add(sending);
    }
  }

  async #send(entry: Entry): Promise<void> {
    try {
      await this.#mailer.send(entry.mail);
      this.#trouble = null;
    } catch (error) {
      this.#failed(entry, error);
    }
  }

  #failed(entry: Entry, error: unknown): void {
    const { to, subject } = entry.mail;
    const delayMs = Math.min(authLimits.mailRetryMs * 2 ** entry.failures, authLimits.mailRetryMsMax);
    entry.failures++;
    const permanent = error instanceof MailError && error.permanent;
    const reason = error instanceof Error ? error.message : String(error);
    this.#trouble = permanent ? null : reason;
    const hopeless = permanent || this.#closed || this.#now() + delayMs > entry.usefulUntil;
    this.#log(
      hopeless ? "error" : "warn",
      hopeless ? "Mail failed permanently" : "Mail failed, will be retried",
      {
        to,
        subject,
        failures: entry.failures,
        ...(!hopeless && { retryInMs: delayMs }),
        reason,
      },
    );
    if (hopeless) return;
    const cancel = this.#schedule(() => {
      this.#retries.delete(entry);
      this.#ready.push(entry);
      this.#next();
    }, delayMs);
    this.#retries.set(entry, cancel);
  }
}

function scheduleTimer(callback: () => void, delayMs: number): () => void {
  const timer = setTimeout(callback, delayMs);
  // A mail waiting for a retry does not keep the process running.
  Deno.unrefTimer(timer);
  return () => clearTimeout(timer);
}
