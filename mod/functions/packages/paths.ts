/** Paths of files below folders. */

/** Returns a path relative to a folder that contains it: `src/a.ts`. The folder may be the root. */
export function nameBelow(folder: string, path: string): string {
  return path.slice(folder === "/" ? 1 : folder.length + 1);
}

export function isInside(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(folder === "/" ? folder : `${folder}/`));
}
