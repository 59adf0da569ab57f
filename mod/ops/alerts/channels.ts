/** Delivery of alerts by mail and webhook: the texts, and one attempt to send them. */
import { alertLimits } from "../limits.ts";

export const webhookFormats = ["json", "slack", "discord"] as const;

export interface Webhook {
  readonly format: (typeof webhookFormats)[number];
  /** Often contains a secret, so it is neither logged nor shown. */
  readonly url: string;
}

export interface AlertItem {
  readonly status: "active" | "recovered" | "test";
  readonly severity: "error" | "warning";
  /** Key of the issue. */
  readonly key: string;
  readonly text: string;
  /** The view of the dashboard that resolves it. */
  readonly url: string;
}

/** Issues that began or ended at the same check. */
export interface Alert {
  /** Name of the app. */
  readonly app: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly items: readonly AlertItem[];
}

export interface AlertMail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** Sends alerts to one recipient. */
export interface AlertChannel {
  /** Shown to administrators. */
  readonly name: string;
  /** Rejects with the reason. */
  readonly send: (alert: Alert, signal: AbortSignal) => Promise<void>;
}

export function mailChannel(to: string, sendMail: (mail: AlertMail) => Promise<void>): AlertChannel {
  return {
    name: to,
    send: (alert) => sendMail({ to, ...mailOf(alert) }),
  };
}

export function webhookChannel({ format, url }: Webhook, fetchUrl: typeof fetch = fetch): AlertChannel {
  return {
    name: `${new URL(url).host} (${format})`,
    async send(alert, stopping) {
      const signal = AbortSignal.any([stopping, AbortSignal.timeout(alertLimits.webhookMs)]);
      const response = await fetchUrl(url, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(bodyOf(alert, format)),
        redirect: "manual",
        signal,
      }).catch((error) => {
        // The original message contains the URL.
        const isLate = error instanceof DOMException && error.name === "TimeoutError";
        throw new Error(isLate ? "The server did not answer in time" : "Cannot connect");
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`The server answered with status ${response.status}`);
    },
  };
}

/** Describes an alert in one line. */
export function titleOf({ app, items }: Alert): string {
  const [first] = items;
  if (items.length === 1 && first !== undefined) return `${app}: ${lineOf(first)}`;
  const recovered = items.filter(({ status }) => status === "recovered").length;
  const active = items.length - recovered;
  const parts = [
    ...active > 0 ? [`${active} new ${active === 1 ? "issue" : "issues"}`] : [],
    ...recovered > 0 ? [`${recovered} recovered`] : [],
  ];
  return `${app}: ${parts.join(", ")}`;
}

function lineOf({ status, text }: AlertItem): string {
  // The text describes the time when the issue was reported.
  return status === "recovered" ? `Recovered. The issue was: ${text}` : text;
}

function mailOf(alert: Alert): Omit<AlertMail, "to"> {
  const rows = alert.items.map((item) =>
    `<p>${escapeHtml(lineOf(item))}<br><a href="${escapeHtml(item.url)}">${escapeHtml(item.url)}</a></p>`
  );
  return {
    // A line break would end the header.
    subject: titleOf(alert).replaceAll(/\s+/g, " ").slice(0, alertLimits.subjectCharsMax),
    text: alert.items.map((item) => `${lineOf(item)}\n${item.url}\n`).join("\n"),
    html: rows.join("\n"),
  };
}

function bodyOf(alert: Alert, format: Webhook["format"]): object {
  switch (format) {
    case "json":
      return { ...alert, at: new Date(alert.at).toISOString() };
    case "slack":
      return { text: chatText(alert, (text) => text.replaceAll(/[&<>]/g, (char) => ENTITIES[char] ?? char)) };
    case "discord":
      return {
        content: chatText(alert, (text) => text).slice(0, alertLimits.discordCharsMax),
        // Texts of the app must not notify members.
        allowed_mentions: { parse: [] },
      };
    default:
      return format satisfies never;
  }
}

function chatText(alert: Alert, escape: (text: string) => string): string {
  if (alert.items.length === 1) return [escape(titleOf(alert)), alert.items[0]?.url].join("\n");
  const lines = alert.items.map((item) => `• ${escape(lineOf(item))} ${item.url}`);
  return [escape(titleOf(alert)), ...lines].join("\n");
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? char);
}
