/** Mail templates: built in, from a folder, or from settings. */
import { join } from "node:path";
import type { Mail } from "./mailer.ts";
import { builtInTemplates, type MailKind, type Template } from "./built_in_templates.ts";

/** Values of all mails. */
interface CommonValues {
  readonly app: string;
  /** Address the mail goes to. */
  readonly email: string;
}

/** Values of a mail with a code. */
interface CodeValues extends CommonValues {
  readonly link: string;
  /** 6 digits. */
  readonly code: string;
  /** How long code and link are valid, such as `15 minutes`. */
  readonly validFor: string;
}

/** Values of a mail about a new device. */
interface DeviceValues extends CommonValues {
  /** Browser and system, such as `Firefox on Windows`. */
  readonly device: string;
  /** When it signed in, with the time zone. */
  readonly time: string;
}

export type TemplateValues = CodeValues | DeviceValues;

export type Templates = Readonly<Record<MailKind, Template>>;

export const mailKinds: readonly MailKind[] = ["verify", "reset", "magic", "change", "device"];
const CODE_NAMES: readonly (keyof CodeValues)[] = ["app", "email", "link", "code", "validFor"];
const DEVICE_NAMES: readonly (keyof DeviceValues)[] = ["app", "email", "device", "time"];
const PLACEHOLDER = /\{\{\s*([^{}]*?)\s*\}\}/g;

/** A template is unusable; the message names it and the reason. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}

/** Template texts by kind of mail: `Subject: …`, an empty line, and the body. */
export type MailTexts = Readonly<Partial<Record<MailKind, string>>>;

/**
 * Returns the built-in templates, overridden by the files of a folder (`<kind>.txt`, whose first line is `Subject: …`, and
 * `<kind>.html`), and these by texts. Throws {@linkcode TemplateError}.
 */
export async function loadTemplates(folder: string | null, texts: MailTexts = {}): Promise<Templates> {
  const templates = folder === null ? { ...builtInTemplates } : await templatesIn(folder);
  for (const kind of mailKinds) {
    const text = texts[kind];
    if (text !== undefined) templates[kind] = templateOf(kind, text);
  }
  return templates;
}

/** Returns the template of a text; the HTML is derived from it. Throws {@linkcode TemplateError}. */
export function templateOf(kind: MailKind, text: string): Template {
  const split = splitSubject(text, `of "${kind}"`);
  const template = { ...split, html: htmlOf(split.text) };
  checkPlaceholders(kind, template);
  return template;
}

async function templatesIn(folder: string): Promise<Record<MailKind, Template>> {
  const templates = { ...builtInTemplates };
  for (const kind of mailKinds) {
    const text = await readOptional(join(folder, `${kind}.txt`));
    const html = await readOptional(join(folder, `${kind}.html`));
    if (text !== null) templates[kind] = { ...templates[kind], ...splitSubject(text, `${kind}.txt`) };
    if (html !== null) templates[kind] = { ...templates[kind], html };
    checkPlaceholders(kind, templates[kind]);
  }
  return templates;
}

/** Renders a template. Values are escaped in HTML and cannot add header lines to the subject. */
export function renderMail(template: Template, values: TemplateValues): Mail {
  const fill = (text: string, escape: (value: string) => string) =>
    text.replaceAll(PLACEHOLDER, (whole, name: string) => {
      const value = Object.entries<string>({ ...values }).find(([known]) => known === name)?.[1];
      return value === undefined ? whole : escape(value);
    });
  return {
    to: values.email,
    subject: fill(template.subject, (value) => value).replaceAll(/[\r\n]+/g, " "),
    text: fill(template.text, (value) => value),
    html: fill(template.html, escapeHtml),
  };
}

/** Returns HTML paragraphs, with the link as a button and the code highlighted. */
function htmlOf(text: string): string {
  const paragraphs = escapeHtml(text.replaceAll("\r\n", "\n").trim()).split(/\n(?:[ \t]*\n)+/).map((
    paragraph,
  ) => `<p>${paragraph.replaceAll("\n", "<br>\n")}</p>`);
  const body = paragraphs.join("\n").replaceAll(
    PLACEHOLDER,
    (whole, name: string) =>
      name === "link"
        ? '<a href="{{link}}">{{link}}</a>'
        : name === "code"
        ? "<strong>{{code}}</strong>"
        : whole,
  );
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"></head>
<body style="font:16px/1.5 system-ui,sans-serif">
${body}
</body>
</html>
`;
}

function splitSubject(file: string, name: string): { subject: string; text: string } {
  const match = /^\uFEFF?Subject:[ \t]*([^\r\n]+)\r?\n(?:\r?\n)?([^]*)$/.exec(file);
  if (!match) {
    throw new TemplateError(`Invalid mail template ${name}: the first line must be "Subject: ..."`);
  }
  const [, subject = "", text = ""] = match;
  return { subject, text };
}

function checkPlaceholders(kind: MailKind, { subject, text, html }: Template): void {
  const names: readonly string[] = kind === "device" ? DEVICE_NAMES : CODE_NAMES;
  for (const [part, content] of [["subject", subject], ["text", text], ["HTML", html]] as const) {
    const used = [...content.matchAll(PLACEHOLDER)].map(([, name = ""]) => name);
    const unknown = used.find((name) => !names.includes(name));
    if (unknown !== undefined) {
      throw new TemplateError(
        `Invalid mail template "${kind}": unknown placeholder {{${unknown}}} in the ${part}, expected ${
          names.join(", ")
        }`,
      );
    }
    if (kind !== "device" && part !== "subject" && !used.includes("link") && !used.includes("code")) {
      throw new TemplateError(
        `Invalid mail template "${kind}": the ${part} contains neither {{link}} nor {{code}}`,
      );
    }
  }
}

async function readOptional(path: string): Promise<string | null> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    if (error instanceof Deno.errors.NotCapable) {
      throw new TemplateError(
        `Cannot read "${path}": start the server with the folder as --mail-templates`,
      );
    }
    throw error;
  }
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
  };
  return text.replaceAll(/[&<>"']/g, (char) => entities[char] ?? char);
}
