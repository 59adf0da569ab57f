/** Tables of the documentation that repeat what the code defines. */
import { rateLimits } from "../../auth/limits.ts";
import { commands } from "../../cli/commands.ts";
import { type OptionName, optionsOf, type OptionSpec } from "../../config/options.ts";
import { serviceErrors } from "../../errors.ts";

/** Options of `serve` by subject. Each option is in exactly one group. */
const OPTION_GROUPS: readonly (readonly [title: string, names: readonly OptionName[]])[] = [
  ["Server", [
    "host",
    "port",
    "data",
    "functions",
    "static",
    "memory",
    "workers",
    "takeover",
    "restartExitCode",
  ]],
  ["Development", ["dev", "devFrontend", "skipTypeCheck"]],
  ["Functions", ["queryTimeout", "mutationTimeout", "actionNet", "envFile"]],
  ["Addresses and proxies", ["publicUrl", "trustedProxy", "allowHost", "allowOrigin"]],
  ["Accounts and mail", [
    "authRedirectUrl",
    "requireVerification",
    "disableSignups",
    "disableMagicLink",
    "accessTokenTtl",
    "smtpUrl",
    "mailFrom",
    "appName",
    "authConfig",
    "rateLimits",
    "mailTemplates",
    "mailVerify",
    "mailReset",
    "mailMagic",
    "mailChange",
  ]],
  ["Files and buckets", [
    "storage",
    "storagePrivate",
    "storageKeepDeleted",
    "uploadMaxBytes",
    "thumbSizes",
    "s3Endpoint",
    "s3Region",
    "s3AccessKeyId",
    "s3SecretAccessKey",
  ]],
  ["Backups", ["backupEvery", "backupKeep", "backupTo"]],
  ["Replication", [
    "replicateTo",
    "replicateEvery",
    "snapshotEvery",
    "replicateKeep",
    "replicateMaxPending",
    "followed",
    "promote",
    "heartbeatUrl",
  ]],
  ["Several servers", [
    "cluster",
    "clusterSecret",
    "clusterSnapshots",
    "clusterAddress",
    "clusterListen",
  ]],
  ["Logs and metrics", ["logKeep", "logMaxSize", "metrics", "metricsToken"]],
];

/** Returns a table for each subject. Throws `TypeError` if an option is in no group. */
export function optionTables(): string {
  const left = new Map<OptionName, OptionSpec>(optionsOf("serve"));
  const groups = OPTION_GROUPS.map(([title, names]) => {
    const rows = names.map((name) => {
      const spec = left.get(name);
      if (spec === undefined) throw new TypeError(`Option "${name}" is in two groups or in none of serve`);
      left.delete(name);
      return optionRow(spec);
    });
    return `## ${title}\n\n${table(["Option", "Variable", "Default", "Meaning"], rows)}`;
  });
  if (left.size > 0) throw new TypeError(`No group in the documentation for: ${[...left.keys()].join(", ")}`);
  return groups.join("\n");
}

/** Cells of an option's row: flag, variable, default, description. */
function optionRow(spec: OptionSpec): string[] {
  const value = spec.placeholder === null ? "" : ` <${spec.placeholder}>`;
  return [`\`${spec.flag}${value}\``, `\`${spec.env}\``, spec.defaultText ?? "", cell(spec.description)];
}

/** Returns the table of error codes. The last column is kept from the page. */
export function errorTable(page: string): string {
  const fixes = new Map(
    [...page.matchAll(/^\| `(\w+)` +\| \d+ +\|.*?(?<!\\)\| (.*?) *\|$/gm)].map((
      [, code, fix],
    ) => [code, fix]),
  );
  const rows = Object.entries(serviceErrors).map(([code, [status, message]]) => [
    `\`${code}\``,
    String(status),
    cell(message),
    fixes.get(code) ?? "",
  ]);
  return table(["Code", "Status", "Message", "Cause and fix"], rows);
}

/** Returns the table of rate limits, with the docstring of each. */
export async function rateLimitTable(): Promise<string> {
  const source = await Deno.readTextFile(new URL("../../auth/limits.ts", import.meta.url));
  const rows = Object.entries(rateLimits).map(([name, { burst, perMinute }]) => {
    const [, docs = ""] = new RegExp(`/\\*\\* ([^\\n]*) \\*/\\s+${name}: `).exec(source) ?? [];
    return [`\`${name}\``, burst.toLocaleString("en"), perMinute.toLocaleString("en"), cell(docs)];
  });
  return table(["Name", "At once", "Per minute", "Counts"], rows);
}

/** Returns the table of metrics, from the source that defines them. */
export async function metricsTable(): Promise<string> {
  const source = await Deno.readTextFile(new URL("../../ops/metrics/server_metrics.ts", import.meta.url));
  const pattern =
    /to\.(counter|gauge|histogram)\(\{\s*name: "(\w+)",\s*help:\s*((?:"[^"]*"\s*\+?\s*)+),(?:\s*labels: \[([^\]]*)\])?/g;
  const rows = [...source.matchAll(pattern)].map(([, type = "", name = "", help = "", labels = ""]) => [
    `\`${name}\``,
    type,
    labels.replaceAll('"', "`"),
    cell([...help.matchAll(/"([^"]*)"/g)].map(([, text]) => text).join("")),
  ]);
  const defined = source.match(/name: "syncline_/g)?.length;
  if (rows.length !== defined) throw new TypeError(`Found ${rows.length} of ${defined} metrics`);
  return table(["Metric", "Type", "Labels", "Meaning"], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  return line(head) + line(head.map(() => "---")) + rows.map(line).join("");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("\n", " ");
}

/** Returns a section for each command, with its options. The options of `serve` are on a page of their own. */
export function commandSections(): string {
  return commands.map(({ name, description, argument, second }) => {
    const positional = [argument, second].filter((one) => one !== undefined);
    const words = positional.map(({ name, optional }) => optional ? `[${name}]` : `<${name}>`);
    const usage = ["npx syncline", name, ...words, "[options]"].join(" ");
    const arguments_ = positional.map(({ name, description }) => `- \`${name}\`: ${description}\n`).join("");
    const rows = optionsOf(name).map(([, spec]) => optionRow(spec));
    const options = name === "serve"
      ? "Its options are listed in [Options](options.md).\n"
      : rows.length === 0
      ? ""
      : table(["Option", "Variable", "Default", "Meaning"], rows);
    return `## ${name}\n\n${description}.\n\n\`\`\`text\n${usage}\n\`\`\`\n\n${arguments_}\n${options}`;
  }).join("\n");
}
