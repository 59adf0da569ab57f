/** Replaces paths of version files in text by the author's paths. */
import { pathToFileURL } from "node:url";

/** A code folder and its original. Absolute paths. */
export interface CodePlace {
  readonly folder: string;
  readonly authorFolder: string;
}

/** Returns a function that replaces paths and URLs below the folder. */
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
