/** Renders a page of the documentation as HTML. Links to files outside the documentation become plain text. */
import { Marked, type Token } from "marked";
import { escapeHtml, GRAFANA_FILE, type RenderedPage, type Section } from "./page_html.ts";

/** Renders Markdown. `pages` are the names of all pages; links to others are dropped. */
export function renderPage(
  markdown: string,
  { pages }: { readonly pages: readonly string[] },
): RenderedPage {
  let title = "";
  let summary: string | null = null;
  const slugs = new Map<string, number>();
  const headings: Omit<Section, "text">[] = [];
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const text = this.parser.parseInline(tokens);
        const id = slugOf(text, slugs);
        if (depth === 1) title = text;
        headings.push({ id: depth === 1 ? "" : id, title: text, depth });
        return `<h${depth} id="${id}">${text}</h${depth}>\n`;
      },
      paragraph({ tokens }) {
        const text = this.parser.parseInline(tokens);
        summary ??= (/^[^]*?[.:](?=\s|$)/.exec(text)?.[0] ?? text).replaceAll(/<\/?a[^>]*>/g, "");
        return `<p>${text}</p>\n`;
      },
      // Rows that begin with a code, an option or a limit can be linked to by that name.
      tablerow({ text }) {
        const [, name] = /^<td[^>]*><code>([\w-]+)/.exec(text) ?? [];
        return `<tr${name === undefined ? "" : ` id="${name}"`}>${text}</tr>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, pages);
        return target === null ? text : `<a href="${target}">${text}</a>`;
      },
      image: ({ text }) => escapeHtml(text),
      // Comments mark generated parts of a page.
      html: ({ text }) => /^<!--[^]*-->\s*$/.test(text) ? "" : escapeHtml(text),
    },
  });
  const tokens = marked.lexer(markdown);
  const html = marked.parser(tokens);
  return { title, summary: summary ?? "", html, sections: sectionsOf(tokens, headings) };
}

function sectionsOf(tokens: readonly Token[], headings: readonly Omit<Section, "text">[]): Section[] {
  const texts: string[] = [];
  for (const token of tokens) {
    if (token.type === "heading") texts.push("");
    else if (texts.length > 0) texts.push(`${texts.pop()}${plainText(token.raw)} `);
  }
  return headings.map((heading, i) => ({ ...heading, text: texts[i] ?? "" }));
}

function plainText(markdown: string): string {
  return markdown
    .replaceAll(/<!--[^]*?-->|^```.*$|[`*|]|^[-| :]+$/gm, "")
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/\s+/g, " ");
}

/** The address of a link on the server; `null` for files that are not part of the documentation. */
function targetOf(href: string, pages: readonly string[]): string | null {
  if (/^https?:\/\//.test(href) || href.startsWith("#")) return escapeHtml(href);
  const [, name = "", anchor = ""] = /^([\w-]+)\.md(#[\w-]*)?$/.exec(href) ?? [];
  if (name === "README") return `./${anchor}`;
  if (href === GRAFANA_FILE) return href;
  return pages.includes(name) ? name + anchor : null;
}

function slugOf(text: string, slugs: Map<string, number>): string {
  const plain = text.replaceAll(/<[^>]*>|&[a-z#0-9]+;/gi, "").toLowerCase();
  const slug = plain.replaceAll(/[^\w\s-]/g, "").trim().replaceAll(/\s/g, "-");
  const earlier = slugs.get(slug) ?? 0;
  slugs.set(slug, earlier + 1);
  return earlier === 0 ? slug : `${slug}-${earlier}`;
}
