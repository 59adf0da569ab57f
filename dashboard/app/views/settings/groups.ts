/** Groups and labels of settings. */
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";

export interface Group {
  readonly title: string;
  readonly settings: readonly SettingView[];
  /** The connection test offered with the group. */
  readonly test: "mail" | "place" | "places" | null;
}

const GROUPS: readonly { readonly title: string; readonly names: RegExp }[] = [
  { title: "Accounts", names: /^(auth|require|disable|appName|rateLimits)/ },
  { title: "Mail", names: /^(smtp|mail)/ },
  { title: "Scheduled backups", names: /^backup/ },
  { title: "Bucket", names: /^s3/ },
  { title: "Execution log", names: /^log/ },
];

const TESTS: Readonly<Record<string, Group["test"]>> = {
  "Mail": "mail",
  "Scheduled backups": "place",
  "Bucket": "places",
};

/** Settings that match no group are listed last, under "Others". */
export function grouped(settings: readonly SettingView[]): readonly Group[] {
  const groupOf = (name: string) => GROUPS.find(({ names }) => names.test(name))?.title ?? "Others";
  return [...GROUPS.map(({ title }) => title), "Others"].map((title) => ({
    title,
    settings: settings.filter(({ name }) => groupOf(name) === title),
    test: TESTS[title] ?? null,
  })).filter(({ settings }) => settings.length > 0);
}

const WORDS: Readonly<Record<string, string>> = { s3: "S3", smtp: "SMTP", url: "URL", id: "ID" };

/** Turns `s3AccessKeyId` into `S3 access key ID`. */
export function labelOf(name: string): string {
  const words = name.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase().split(" ")
    .map((word) => WORDS[word] ?? word).join(" ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
