/** The HTML around a page of the documentation: navigation, search form and table of contents. */
import type { DocsPage, DocsSite } from "./docs_site.ts";
import { escapeHtml } from "./render_page.ts";
import type { SearchResult } from "./search.ts";

/** The content of a response. */
export type PageContent =
  | { readonly kind: "index" }
  | { readonly kind: "page"; readonly page: DocsPage }
  | { readonly kind: "search"; readonly query: string; readonly results: readonly SearchResult[] };

/** Pages with fewer sections have no table of contents. */
const CONTENTS_MIN = 3;

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
  const headings = chapters.length < CONTENTS_MIN
    ? sections.filter(({ depth }) => depth === 2 || depth === 3)
    : chapters;
  if (headings.length < CONTENTS_MIN) return "";
  const links = headings.map(({ id, title }) => `<a href="#${id}">${title}</a>`);
  return `<aside aria-label="On this page"><h2>On this page</h2>${links.join("")}</aside>`;
}
