/** The search of the documentation: sections that contain every word of a query, best matches first. */
import type { DocsPage } from "./docs_site.ts";
import type { Section } from "./render_page.ts";

const QUERY_CHARS_MAX = 100;
const RESULTS_MAX = 30;
const EXCERPT_CHARS = 160;
/** A word in a heading outweighs this many occurrences in the text. */
const HEADING_WEIGHT = 20;

export interface SearchResult {
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
