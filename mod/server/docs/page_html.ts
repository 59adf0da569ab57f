/** The documentation as HTML: pages with navigation and table of contents, search, and style. */

/** A heading and the text up to the next one. */
export interface Section {
  /** Anchor of the heading; empty for the text before the first one below the title. */
  readonly id: string;
  /** HTML. */
  readonly title: string;
  readonly depth: number;
  readonly text: string;
}

export interface RenderedPage {
  /** HTML. */
  readonly title: string;
  /** The first sentence as HTML; empty for a page without a paragraph. */
  readonly summary: string;
  readonly html: string;
  readonly sections: readonly Section[];
}

export interface DocsPage extends RenderedPage {
  /** File name without its ending; also the path of the page. */
  readonly name: string;
  readonly markdown: string;
}

/** Pages listed under one heading of the index. */
export interface PageGroup {
  readonly title: string;
  readonly pages: readonly DocsPage[];
}

/** All pages, in the order of the index. */
export interface DocsSite {
  readonly index: string;
  readonly groups: readonly PageGroup[];
  readonly pages: ReadonlyMap<string, DocsPage>;
}

/** The one file of the documentation that is no page: a dashboard for Grafana. */
export const GRAFANA_FILE = "grafana.json";

/** Style sheet of the documentation, for light and dark themes and screens of any width. */
export const docsStyle =
  `:root { color-scheme: light dark; --line: light-dark(#ddd, #444); --soft: light-dark(#f5f5f5, #222); }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 15rem minmax(0, 1fr) auto; font: 1rem/1.6 system-ui, sans-serif; }
nav, aside { padding: 1.5rem 1rem; position: sticky; top: 0; height: 100vh; overflow-y: auto; }
nav { border-right: 1px solid var(--line); }
aside { width: 14rem; font-size: 0.9em; }
nav h2, aside h2 { font-size: 0.8rem; text-transform: uppercase; letter-spacing: 0.04em; opacity: 0.7; margin: 1.2rem 0.5rem 0.2rem; }
nav input { width: 100%; font: inherit; padding: 0.3rem 0.5rem; margin-bottom: 0.8rem; border: 1px solid var(--line); border-radius: 4px; background: none; color: inherit; }
nav a, aside a { display: block; padding: 0.15rem 0.5rem; color: inherit; text-decoration: none; border-radius: 4px; }
nav form + a { font-weight: 600; }
nav a:hover, nav a[aria-current], aside a:hover { background: var(--soft); }
main { max-width: 52rem; padding: 1.5rem 2rem 4rem; min-width: 0; }
h1, h2, h3 { line-height: 1.25; scroll-margin-top: 1rem; }
main h2 { margin-top: 2.5rem; }
code { font: 0.9em ui-monospace, monospace; background: var(--soft); padding: 0.1em 0.3em; border-radius: 3px; }
pre { background: var(--soft); padding: 0.8rem 1rem; border-radius: 6px; overflow-x: auto; }
pre code { background: none; padding: 0; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.7rem; border-bottom: 1px solid var(--line); }
tr:target, :target { background: light-dark(#fff3c4, #4a3f12); }
.results span { display: block; opacity: 0.75; }
@media (max-width: 72rem) {
  body { grid-template-columns: 15rem minmax(0, 1fr); }
  aside { display: none; }
}
@media (max-width: 48rem) {
  body { display: block; }
  nav { position: static; height: auto; max-height: 14rem; border-right: 0; border-bottom: 1px solid var(--line); }
  main { padding: 1rem; }
}
`;

const QUERY_CHARS_MAX = 100;
const RESULTS_MAX = 30;
const EXCERPT_CHARS = 160;
/** A word in a heading outweighs this many occurrences in the text. */
const HEADING_WEIGHT = 20;

interface SearchResult {
  readonly page: DocsPage;
  readonly section: Section;
  /** Plain text around the first occurrence of a word. */
  readonly excerpt: string;
}

/** Returns at most 30 sections. An empty query has no results. */
export function findSections(pages: Iterable<DocsPage>, query: string): SearchResult[] {
  const words = query.slice(0, QUERY_CHARS_MAX).toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return [];
  const found: (SearchResult & { readonly score: number })[] = [];
  for (const page of pages) {
    for (const section of page.sections) {
      const text = section.text.toLowerCase();
      const title = `${page.title} ${section.title}`.toLowerCase();
      const scores = words.map((word) =>
        text.split(word).length - 1 + (title.includes(word) ? HEADING_WEIGHT : 0)
      );
      if (scores.some((score) => score === 0)) continue;
      const score = scores.reduce((sum, value) => sum + value, 0);
      found.push({ page, section, excerpt: excerptOf(section.text, words[0] ?? ""), score });
    }
  }
  return found.sort((a, b) => b.score - a.score).slice(0, RESULTS_MAX);
}

function excerptOf(text: string, word: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - EXCERPT_CHARS / 2);
  const excerpt = text.slice(at, at + EXCERPT_CHARS).trim();
  return `${at > 0 ? "…" : ""}${excerpt}${at + EXCERPT_CHARS < text.length ? "…" : ""}`;
}

export type PageContent =
  | { readonly kind: "index" }
  | { readonly kind: "page"; readonly page: DocsPage }
  | { readonly kind: "search"; readonly query: string; readonly results: readonly SearchResult[] };

/** Pages with fewer sections have no table of contents. */
const CONTENTS_MIN = 3;
/** Chapters from which a page lists them without their sections. */
const CHAPTERS_ALONE_MIN = 20;

/** Returns a whole HTML document. */
export function pageHtml(site: DocsSite, content: PageContent): string {
  const current = content.kind === "page" ? content.page : null;
  const query = content.kind === "search" ? content.query : "";
  const title = current?.title ?? (content.kind === "search" ? "Search" : "Documentation");
  const groups = site.groups.map((group) => {
    const links = group.pages.map(({ name, title }) =>
      `<a href="${name}"${name === current?.name ? ' aria-current="page"' : ""}>${title}</a>`
    );
    return `<h2>${escapeHtml(group.title)}</h2>${links.join("")}`;
  });
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
<nav aria-label="Pages">
<form action="search" role="search"><input type="search" name="q" maxlength="100" placeholder="Search" aria-label="Search the documentation" value="${
    escapeHtml(query)
  }"></form>
<a href="./">Documentation</a>
${groups.join("\n")}
</nav>
<main>
${bodyOf(site, content)}
</main>
${current === null ? "" : contentsOf(current)}
</body>
</html>
`;
}

function bodyOf(site: DocsSite, content: PageContent): string {
  switch (content.kind) {
    case "index":
      return site.index;
    case "page":
      return content.page.html;
    case "search":
      return searchHtml(content.query, content.results);
  }
}

function searchHtml(query: string, results: readonly SearchResult[]): string {
  const items = results.map(({ page, section, excerpt }) => {
    const heading = section.id === "" ? page.title : `${page.title}: ${section.title}`;
    return `<li><a href="${page.name}${section.id === "" ? "" : `#${section.id}`}">${heading}</a> <span>${
      escapeHtml(excerpt)
    }</span></li>`;
  });
  return `<h1>Search</h1>\n<p>${results.length} results for “${
    escapeHtml(query)
  }”</p>\n<ul class="results">\n${items.join("\n")}\n</ul>`;
}

function contentsOf({ sections }: DocsPage): string {
  const chapters = sections.filter(({ depth }) => depth === 2);
  // The API pages have few chapters with many entries.
  const headings = chapters.length < CHAPTERS_ALONE_MIN
    ? sections.filter(({ depth }) => depth === 2 || depth === 3)
    : chapters;
  if (headings.length < CONTENTS_MIN) return "";
  const links = headings.map(({ id, title }) => `<a href="#${id}">${title}</a>`);
  return `<aside aria-label="On this page"><h2>On this page</h2>${links.join("")}</aside>`;
}

/** Escapes text for HTML and for attributes in double quotes. */
export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
