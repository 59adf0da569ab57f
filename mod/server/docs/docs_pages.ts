/**
 * The documentation as the server shows it at `/_/docs/`: pages of `docs/` made into HTML when they are first asked for, what
 * they say as text beside them, and `llms.txt`, which lists them for programs.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { docsStyle } from "./docs_style.ts";
import type { Rendered } from "./render_page.ts";

const FOLDER = fileURLToPath(new URL("../../../docs", import.meta.url));
const NAME = /^[a-z0-9_-]+$/;
/** What is read first, in this order; the others follow by name. */
const FIRST = [
  "getting_started",
  "first_app",
  "schema",
  "functions",
  "queries",
  "client",
  "react",
  "sign_in_forms",
  "account_errors",
  "error_boundaries",
  "optimistic_updates",
  "accounts",
  "files",
  "signed_urls",
  "testing",
  "deploying",
  "migrations",
];

interface Page extends Rendered {
  readonly name: string;
  readonly markdown: string;
}

export class DocsPages {
  readonly #folder: string;
  #pages: Promise<ReadonlyMap<string, Page>> | null = null;

  constructor(folder = FOLDER) {
    this.#folder = folder;
  }

  /** Answers a request for a path below `/_/docs/`, without that; `null` for what is not there. */
  async respond(path: string): Promise<Response | null> {
    if (path === "style.css") return answer(docsStyle, "text/css");
    const pages = await this.#all();
    if (path === "") return answer(html("Documentation", contents(pages), pages), "text/html");
    if (path === "llms.txt") return answer(llmsText(pages), "text/plain");
    const [, name = "", ending = ""] = /^([^.]*)(\.md)?$/.exec(path) ?? [];
    const page = pages.get(name);
    if (page === undefined) return null;
    return ending === ".md"
      ? answer(page.markdown, "text/markdown")
      : answer(html(page.title, page.html, pages, name), "text/html");
  }

  async #all(): Promise<ReadonlyMap<string, Page>> {
    const pages = this.#pages ??= this.#read();
    try {
      return await pages;
    } catch (error) {
      // Whoever asks next may find them.
      if (this.#pages === pages) this.#pages = null;
      throw error;
    }
  }

  async #read(): Promise<ReadonlyMap<string, Page>> {
    // Nobody who does not read here has it in memory.
    const { renderPage } = await import("./render_page.ts");
    const names: string[] = [];
    for await (const { name } of Deno.readDir(this.#folder)) {
      const page = name.replace(/\.md$/, "");
      if (page !== name && NAME.test(page)) names.push(page);
    }
    const place = (name: string) => FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length;
    names.sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
    const pages = new Map<string, Page>();
    for (const name of names) {
      const markdown = await Deno.readTextFile(join(this.#folder, `${name}.md`));
      pages.set(name, { name, markdown, ...renderPage(markdown, { pages: names }) });
    }
    return pages;
  }
}

function answer(text: string, type: string): Response {
  return new Response(text, {
    headers: { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-cache" },
  });
}

function contents(pages: ReadonlyMap<string, Page>): string {
  const items = [...pages.values()].map(({ name, title, summary }) =>
    `<li><a href="${name}">${title}</a>${summary === "" ? "" : ` <span>${summary}</span>`}</li>`
  );
  return `<h1>Documentation</h1>\n<ul class="contents">\n${items.join("\n")}\n</ul>`;
}

function html(title: string, body: string, pages: ReadonlyMap<string, Page>, here = ""): string {
  const links = [...pages.values()].map(({ name, title }) =>
    `<a href="${name}"${name === here ? ' aria-current="page"' : ""}>${title}</a>`
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Syncline</title>
<link rel="icon" href="../icon.svg">
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav aria-label="Pages"><a href="./">Documentation</a>${links.join("")}</nav>
<main>
${body}
</main>
</body>
</html>
`;
}

/** The form that llmstxt.org describes. */
function llmsText(pages: ReadonlyMap<string, Page>): string {
  const plain = (text: string) => text.replaceAll(/<[^>]*>/g, "");
  const items = [...pages.values()].map(({ name, title, summary }) =>
    `- [${plain(title)}](/_/docs/${name}.md)${summary === "" ? "" : `: ${plain(summary)}`}`
  );
  return `# Syncline

> A self-hosted realtime backend in TypeScript: queries, mutations and actions, live queries in browsers, accounts,
> files, schedules and backups in one program.

## Documentation

${items.join("\n")}
`;
}
