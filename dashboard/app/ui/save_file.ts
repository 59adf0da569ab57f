/** Gives the person a file to keep. */
export function saveFile(name: string, contents: Blob): void {
  const url = URL.createObjectURL(contents);
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  // The browser has taken it over by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
