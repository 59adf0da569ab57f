/** The documentation in memory. Types only. */
import type { RenderedPage } from "./render_page.ts";

/** A page and its sources. */
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
  /** The index as HTML. */
  readonly index: string;
  readonly groups: readonly PageGroup[];
  readonly pages: ReadonlyMap<string, DocsPage>;
}
