/** Serves `docs/` at `/_/docs/` as pages, Markdown, a search and `llms.txt`. `docs/README.md` is the index. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type DocsPage,
  type DocsSite,
  docsStyle,
  findSections,
  GRAFANA_FILE,
  type PageGroup,
  pageHtml,
} from "./page_html.ts";

const FOLDER = fileURLToPath(new URL("../../../docs", import.meta.url));
const NAME = /^[a-z0-9_-]+$/;
const INDEX = "README.md";

export class DocsPages {
  readonly #folder: string;
  #site: Promise<DocsSite> | null = null;

  constructor(folder = FOLDER) {
    this.#folder = folder;
  }

  /**
   * Answers a request for a path below `/_/docs/`.
   *
   * @param path The path without `/_/docs/`.
   * @param query The search term, for the path `search`.
   * @returns `null` if there is no such page.
   */
  async respond(path: string, query = ""): Promise<Response | null> {
    if (path === "style.css") return respondWith(docsStyle, "text/css");
    if (path === GRAFANA_FILE) {
      return respondWith(await Deno.readTextFile(join(this.#folder, path)), "application/json");
    }
    const site = await this.#load();
    if (path === "") return respondWith(pageHtml(site, { kind: "index" }), "text/html");
    if (path === "search") {
      const results = findSections(site.pages.values(), query);
      return respondWith(pageHtml(site, { kind: "search", query, results }), "text/html");
    }
    if (path === "llms.txt") return respondWith(llmsText(site), "text/plain");
    const [, name = "", ending = ""] = /^([^.]*)(\.md)?$/.exec(path) ?? [];
    const page = site.pages.get(name);
    if (page === undefined) return null;
    return ending === ".md"
      ? respondWith(page.markdown, "text/markdown")
      : respondWith(pageHtml(site, { kind: "page", page }), "text/html");
  }

  /** Finds sections by words, at most 30. */
  async find(query: string): Promise<{ page: string; section: string; excerpt: string }[]> {
    const site = await this.#load();
    return findSections(site.pages.values(), query).map(({ page, section, excerpt }) => ({
      page: page.name,
      section: section.title,
      excerpt,
    }));
  }

  async #load(): Promise<DocsSite> {
    const site = this.#site ??= this.#read();
    try {
      return await site;
    } catch (error) {
      // The next request tries again.
      if (this.#site === site) this.#site = null;
      throw error;
    }
  }

  async #read(): Promise<DocsSite> {
    // Loaded on demand: most servers never render a page.
    const { renderPage } = await import("./render_page.ts");
    const names: string[] = [];
    for await (const { name } of Deno.readDir(this.#folder)) {
      const page = name.replace(/\.md$/, "");
      if (page !== name && NAME.test(page)) names.push(page);
    }
    names.sort();
    const rendered = new Map<string, DocsPage>();
    for (const name of names) {
      const markdown = await Deno.readTextFile(join(this.#folder, `${name}.md`));
      rendered.set(name, { name, markdown, ...renderPage(markdown, { pages: names }) });
    }
    const index = await Deno.readTextFile(join(this.#folder, INDEX)).catch(() => "# Documentation\n");
    const groups = groupsOf(index, rendered);
    return {
      index: renderPage(index, { pages: names }).html,
      groups,
      pages: new Map(groups.flatMap(({ pages }) => pages.map((page) => [page.name, page] as const))),
    };
  }
}

/** The groups of the index: one for each heading of level two, with the pages linked below it. Other pages come last. */
function groupsOf(index: string, pages: ReadonlyMap<string, DocsPage>): PageGroup[] {
  const left = new Map(pages);
  const groups = index.split(/^## /m).slice(1).map((section) => {
    const found: DocsPage[] = [];
    for (const [, name = ""] of section.matchAll(/\]\(([\w-]+)\.md\)/g)) {
      const page = left.get(name);
      if (page === undefined) continue;
      left.delete(name);
      found.push(page);
    }
    return { title: section.slice(0, section.indexOf("\n")).trim(), pages: found };
  }).filter((group) => group.pages.length > 0);
  return left.size === 0 ? groups : [...groups, { title: "More", pages: [...left.values()] }];
}

function respondWith(text: string, type: string): Response {
  return new Response(text, {
    headers: { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-cache" },
  });
}

/** The format of llmstxt.org. */
function llmsText({ groups }: DocsSite): string {
  const plain = (text: string) => text.replaceAll(/<[^>]*>/g, "");
  const sections = groups.map(({ title, pages }) => {
    const items = pages.map(({ name, title, summary }) =>
      `- [${plain(title)}](/_/docs/${name}.md)${summary === "" ? "" : `: ${plain(summary)}`}`
    );
    return `## ${title}\n\n${items.join("\n")}\n`;
  });
  return `# Syncline

> A self-hosted realtime backend in TypeScript: queries, mutations and actions, live queries in browsers, accounts,
> files, schedules and backups in one program.

${sections.join("\n")}`;
}
