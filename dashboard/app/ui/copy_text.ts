/** Copies text to the clipboard. Pages without HTTPS have no clipboard API. */
import { showToast } from "./toasts.tsx";

export async function copyText(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showToast(done);
  } catch {
    showToast(copiesAsEvent(text) ? done : "Select the text to copy it. The clipboard needs HTTPS.");
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
