/** Names of an app's sources in source maps, which do not depend on where a version is stored. */
import { pathToFileURL } from "node:url";

/** The address of the folder that contains all sources. The runtime decodes what follows, so that names are paths. */
export const SOURCES_URL = "app:///";

/** The module of a query that is not part of the app, and the path of its function. */
export const AD_HOC_MODULE = { name: "console.ts", modulePath: "console" } as const;
export const AD_HOC_PATH = "console:query";

/** Returns a function that replaces these addresses by those of the author's folder. */
export function authorTexts(authorFolder: string): (text: string) => string {
  const { href } = pathToFileURL(authorFolder);
  const folder = href.endsWith("/") ? href : `${href}/`;
  return (text) => text.includes(SOURCES_URL) ? text.replaceAll(SOURCES_URL, () => folder) : text;
}
