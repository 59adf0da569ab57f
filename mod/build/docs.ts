/** The pages of `docs/` with their generated parts renewed: tables from the code and API references from docstrings. */
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { rateLimits } from "../auth/limits.ts";
import { commands } from "../cli/commands.ts";
import { type OptionName, optionsOf, type OptionSpec } from "../config/options.ts";
import { serviceErrors } from "../errors.ts";

/** Renders the exports of a module as Markdown: functions and classes first, then types. */
class ApiReference {
  readonly #program: ts.Program;
  readonly #printed = new Set<string>();

  /** @param entries Paths of all modules that will be rendered. */
  constructor(entries: readonly string[]) {
    this.#program = ts.createProgram([...entries], {
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      allowImportingTsExtensions: true,
      noEmit: true,
      skipLibCheck: true,
      types: [],
    });
  }

  /** Exports that an earlier module had are left out. */
  render(entry: string): string {
    const checker = this.#program.getTypeChecker();
    const file = this.#program.getSourceFile(entry);
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
    if (module === undefined) throw new TypeError(`Cannot read the module ${entry}`);
    const values: string[] = [];
    const types: string[] = [];
    for (const exported of checker.getExportsOfModule(module)) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
      if (this.#printed.has(exported.name)) continue;
      this.#printed.add(exported.name);
      const declarations = symbol.declarations ?? [];
      if (declarations.length === 0) throw new TypeError(`Cannot find the declaration of ${exported.name}`);
      const isType = declarations.every((node) =>
        ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)
      );
      (isType ? types : values).push(renderSymbol(exported.name, declarations));
    }
    return [...values, ...types].join("\n");
  }
}

function renderSymbol(name: string, declarations: readonly ts.Declaration[]): string {
  // The implementation of an overloaded function is not public.
  const overloads = declarations.filter((node) => !ts.isFunctionDeclaration(node) || node.body === undefined);
  const shown = overloads.length > 0 ? overloads : declarations;
  const code = shown.map(signatureOf).join("\n");
  const docs = shown.map(docsOf).find((text) => text !== "") ?? "";
  return `### ${name}\n\n${docs}\n\`\`\`typescript\n${code}\n\`\`\`\n`;
}

/** The docstring as Markdown, with its tags as a list. */
function docsOf(node: ts.Node): string {
  const owner = ts.isVariableDeclaration(node) ? node.parent.parent : node;
  const docs = (owner as { jsDoc?: ts.JSDoc[] }).jsDoc?.at(-1);
  if (docs === undefined) return "";
  const lines = [plain(ts.getTextOfJSDocComment(docs.comment) ?? ""), ""];
  const examples: string[] = [];
  for (const tag of docs.tags ?? []) {
    const text = plain(ts.getTextOfJSDocComment(tag.comment) ?? "").replace(/^- /, "");
    if (tag.tagName.text === "example") {
      examples.push(text.replaceAll(/^```tsx?$/gm, "```typescript"), "");
    } else if (ts.isJSDocParameterTag(tag)) {
      lines.push(`- \`${tag.name.getText()}\`: ${text}`);
    } else if (tag.tagName.text !== "module") {
      lines.push(`- ${tag.tagName.text[0]?.toUpperCase()}${tag.tagName.text.slice(1)}: ${text}`);
    }
  }
  return `${[...lines, "", ...examples].join("\n").trim()}\n`;
}

function plain(text: string): string {
  return text.replaceAll(/\{@link(?:code|plain)?\s+([^}|]+?)\s*\}/g, "`$1`").trimEnd();
}

/** The declaration without bodies and private members. */
function signatureOf(node: ts.Declaration): string {
  if (ts.isFunctionDeclaration(node)) return headOf(node);
  if (ts.isClassDeclaration(node)) return classOf(node);
  if (ts.isVariableDeclaration(node)) {
    const type = node.type === undefined ? "" : `: ${node.type.getText()}`;
    return `const ${node.name.getText()}${type}`;
  }
  return withoutExport(plain(node.getText()));
}

function classOf(node: ts.ClassDeclaration): string {
  const heritage = (node.heritageClauses ?? []).map((clause) => ` ${clause.getText()}`).join("");
  const members = node.members.filter(isPublic).map((member) => {
    const docs = (member as { jsDoc?: ts.JSDoc[] }).jsDoc?.at(-1)?.getText();
    return `${docs === undefined ? "" : `  ${docs}\n`}  ${headOf(member)};`;
  });
  return `class ${node.name?.text}${heritage} {\n${plain(members.join("\n"))}\n}`;
}

function isPublic(member: ts.ClassElement): boolean {
  if (member.name !== undefined && ts.isPrivateIdentifier(member.name)) return false;
  if (ts.isClassStaticBlockDeclaration(member)) return false;
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected | ts.ModifierFlags.Override;
  return (ts.getCombinedModifierFlags(member) & hidden) === 0;
}

/** The text of a declaration up to its body or initial value. */
function headOf(node: ts.Node): string {
  const { body, initializer } = node as { body?: ts.Node; initializer?: ts.Node };
  const text = node.getSourceFile().text;
  const end = body?.getStart() ?? initializer?.getStart() ?? node.getEnd();
  return withoutExport(text.slice(node.getStart(), end)).replace(/^async /, "").trim().replace(/[=;]$/, "")
    .trim();
}

function withoutExport(text: string): string {
  return text.replace(/^export (?:default )?(?:declare )?/, "");
}

/** Options of `serve` by subject. Each option is in exactly one group. */
const OPTION_GROUPS: readonly (readonly [title: string, names: readonly OptionName[]])[] = [
  ["Server", [
    "host",
    "port",
    "data",
    "functions",
    "static",
    "demo",
    "memory",
    "workers",
    "takeover",
    "restartExitCode",
  ]],
  ["Development", ["dev", "devFrontend", "skipTypeCheck"]],
  ["Functions", ["queryTimeout", "mutationTimeout", "actionNet", "envFile"]],
  ["Addresses and proxies", ["publicUrl", "trustedProxy", "allowHost", "allowOrigin", "publicOpenapi"]],
  ["Accounts and mail", [
    "authRedirectUrl",
    "requireVerification",
    "disableSignups",
    "disableMagicLink",
    "disableTotp",
    "disablePasskeys",
    "disableDeviceMail",
    "userKeys",
    "anonymousSignIn",
    "anonymousUserTtl",
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
    "mailDevice",
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
  ["Dashboard", ["environmentName", "environmentColor"]],
  ["Alerts", ["alertMail", "alertWebhook", "alertQuietHours", "alertWhen"]],
  ["Logs and metrics", [
    ...["logKeep", "logMaxSize", "logArgs", "metrics", "metricsToken"] as const,
    ...["otlpEndpoint", "otlpHeaders", "otlpSample", "otlpSignals"] as const,
  ]],
];

/** Returns a table for each subject. Throws `TypeError` if an option is in no group. */
function optionTables(): string {
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
function errorTable(page: string): string {
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

async function rateLimitTable(): Promise<string> {
  const source = await Deno.readTextFile(new URL("../auth/limits.ts", import.meta.url));
  const rows = Object.entries(rateLimits).map(([name, { burst, perMinute }]) => {
    const [, docs = ""] = new RegExp(`/\\*\\* ([^\\n]*) \\*/\\s+${name}: `).exec(source) ?? [];
    return [`\`${name}\``, burst.toLocaleString("en"), perMinute.toLocaleString("en"), cell(docs)];
  });
  return table(["Name", "At once", "Per minute", "Counts"], rows);
}

/** Returns the table of metrics, from the source that defines them. */
async function metricsTable(): Promise<string> {
  const source = await Deno.readTextFile(new URL("../ops/metrics/server_metrics.ts", import.meta.url));
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
function commandSections(): string {
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

const repository = fileURLToPath(new URL("../../", import.meta.url));

/** Returns the current text of each page that has a generated part, by its path in the repository. */
export async function generatedPages(): Promise<Map<string, string>> {
  const api = {
    functions: `${repository}mod/functions/api/mod.ts`,
    testing: `${repository}mod/testing/mod.ts`,
    client: `${repository}mod/client/mod.ts`,
    react: `${repository}mod/client/react/mod.ts`,
    accounts: `${repository}mod/client/account_features/mod.ts`,
    reactAccounts: `${repository}mod/client/react/accounts/mod.ts`,
    accountForms: `${repository}mod/client/react/account_forms/mod.ts`,
    presence: `${repository}mod/client/presence/mod.ts`,
    reactPresence: `${repository}mod/client/react/presence/mod.ts`,
    streams: `${repository}mod/client/streams/mod.ts`,
    reactStreams: `${repository}mod/client/react/streams/mod.ts`,
  };
  const bindings = ["vue", "svelte", "solid", "tanstack", "react_native", "token_cookie"].map((name) =>
    [name, `${repository}mod/client/${name}/mod.ts`] as const
  );
  const functions = new ApiReference([api.functions, api.testing]);
  const { functions: _, testing: __, ...ofClients } = api;
  const client = new ApiReference(Object.values(ofClients));
  const parts:
    readonly (readonly [page: string, part: string, text: (page: string) => string | Promise<string>])[] = [
      ["options", "options", optionTables],
      ["errors", "errors", errorTable],
      ["limits", "rate-limits", rateLimitTable],
      ["metrics", "metrics", metricsTable],
      ["commands", "commands", commandSections],
      ["functions_api", "server", () => functions.render(api.functions)],
      ["functions_api", "test", () => functions.render(api.testing)],
      ["client_api", "client", () => client.render(api.client)],
      ["client_api", "accounts", () => client.render(api.accounts)],
      ["client_api", "react", () => client.render(api.react)],
      ["client_api", "react-accounts", () => client.render(api.reactAccounts)],
      ["client_api", "account-forms", () => client.render(api.accountForms)],
      ["client_api", "presence", () => client.render(api.presence)],
      ["client_api", "react-presence", () => client.render(api.reactPresence)],
      ["client_api", "streams", () => client.render(api.streams)],
      ["client_api", "react-streams", () => client.render(api.reactStreams)],
      // The names are those of `syncline/react`.
      ...bindings.map(([name, entry]) =>
        ["client_api", name, () => new ApiReference([entry]).render(entry)] as const
      ),
    ];
  const pages = new Map<string, string>();
  for (const [name, part, render] of parts) {
    const path = `docs/${name}.md`;
    const page = pages.get(path) ?? await Deno.readTextFile(repository + path);
    pages.set(path, replacePart(page, part, await render(page)));
  }
  for (const [path, text] of pages) pages.set(path, await formatted(text));
  return pages;
}

/** Replaces the text between `<!-- generated: part -->` and `<!-- end -->`. */
function replacePart(page: string, part: string, text: string): string {
  const [before = "", rest] = page.split(`<!-- generated: ${part} -->`);
  const end = rest?.indexOf("<!-- end -->") ?? -1;
  if (rest === undefined || end < 0) throw new TypeError(`The page has no generated part "${part}"`);
  return `${before}<!-- generated: ${part} -->\n\n${text}\n${rest.slice(end)}`;
}

async function formatted(text: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", "--ext", "md", "--config", `${repository}deno.json`, "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { success, stdout, stderr } = await child.output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

if (import.meta.main) {
  for (const [path, text] of await generatedPages()) await Deno.writeTextFile(`${repository}${path}`, text);
}
