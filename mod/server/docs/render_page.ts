/** A page of the documentation as HTML. Links to other pages lead to them; what is no page of it is no link. */
import { Marked } from "marked";

export interface Rendered {
  /** HTML, as all of these. */
  readonly title: string;
  /** The first sentence; empty for a page that begins otherwise. */
  readonly summary: string;
  readonly html: string;
}

/** `pages` are the names of those that there are. */
export function renderPage(markdown: string, { pages }: { readonly pages: readonly string[] }): Rendered {
  let title = "";
  let summary: string | null = null;
  const slugs = new Map<string, number>();
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const text = this.parser.parseInline(tokens);
        if (depth === 1) title = text;
        return `<h${depth} id="${slugOf(text, slugs)}">${text}</h${depth}>\n`;
      },
      paragraph({ tokens }) {
        const text = this.parser.parseInline(tokens);
        summary ??= (/^[^]*?[.:](?=\s|$)/.exec(text)?.[0] ?? text).replaceAll(/<\/?a[^>]*>/g, "");
        return `<p>${text}</p>\n`;
      },
      // A row about a code, a flag or a limit can be linked to by that name.
      tablerow({ text }) {
        const [, name] = /^<td[^>]*><code>([\w-]+)/.exec(text) ?? [];
        return `<tr${name === undefined ? "" : ` id="${name}"`}>${text}</tr>\n`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(href, pages);
        return target === null ? text : `<a href="${target}">${text}</a>`;
      },
      image: ({ text }) => escaped(text),
      html: ({ text }) => escaped(text),
    },
  });
  const html = marked.parse(markdown, { async: false });
  return { title, summary: summary ?? "", html };
}

/** Where a link leads from here; `null` for files that are not part of the documentation. */
function targetOf(href: string, pages: readonly string[]): string | null {
  if (/^https?:\/\//.test(href) || href.startsWith("#")) return escaped(href);
  const [, name = "", anchor = ""] = /^([\w-]+)\.md(#[\w-]*)?$/.exec(href) ?? [];
  return pages.includes(name) ? name + anchor : null;
}

function slugOf(text: string, slugs: Map<string, number>): string {
  const plain = text.replaceAll(/<[^>]*>|&[a-z#0-9]+;/gi, "").toLowerCase();
  const slug = plain.replaceAll(/[^\w\s-]/g, "").trim().replaceAll(/\s/g, "-");
  const before = slugs.get(slug) ?? 0;
  slugs.set(slug, before + 1);
  return before === 0 ? slug : `${slug}-${before}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
