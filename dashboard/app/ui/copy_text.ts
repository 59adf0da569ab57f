/** Copies text to the clipboard. Pages without HTTPS have no clipboard API. */
import { showToast } from "./toasts.tsx";

/** @param otherwise What to do without a clipboard. */
export async function copyText(
  text: string,
  done: string,
  otherwise = "Select the text to copy it.",
): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showToast(done);
  } catch {
    showToast(copiesAsEvent(text) ? done : `${otherwise} The clipboard needs HTTPS.`);
  }
}

/** Copies by the older command, whose event takes the text. Returns whether the browser did. */
function copiesAsEvent(text: string): boolean {
  let copied = false;
  const copy = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    // Before listeners of other elements.
    event.stopImmediatePropagation();
    copied = true;
  };
  document.addEventListener("copy", copy, { capture: true });
  try {
    return document.execCommand("copy") && copied;
  } finally {
    document.removeEventListener("copy", copy, { capture: true });
  }
}
