/** Saves a file through the browser's download. */
export function saveFile(name: string, contents: Blob): void {
  const url = URL.createObjectURL(contents);
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  // The browser has started the download long before that.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
