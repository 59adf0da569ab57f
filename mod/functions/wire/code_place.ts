/** Texts that name files of a version name them as their author does. */
import { pathToFileURL } from "node:url";

/** A folder of code, and what it is a copy of. Absolute paths. */
export interface CodePlace {
  readonly folder: string;
  readonly authorFolder: string;
}

/** Puts the author's paths and URLs in the place of those below the folder. */
export function authorTexts({ folder, authorFolder }: CodePlace): (text: string) => string {
  const path = `${folder}/`;
  const authorPath = withSlash(authorFolder);
  const url = withSlash(pathToFileURL(folder).href);
  const authorUrl = withSlash(pathToFileURL(authorFolder).href);
  return (text) => {
    if (text.includes(url)) text = text.replaceAll(url, () => authorUrl);
    return text.includes(path) ? text.replaceAll(path, () => authorPath) : text;
  };
}

function withSlash(name: string): string {
  return name.endsWith("/") ? name : `${name}/`;
}
