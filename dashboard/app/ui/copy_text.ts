/** Copies text to the clipboard, which is unavailable on pages without HTTPS. */
import { showToast } from "./toasts.tsx";

export async function copyText(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showToast(done);
  } catch {
    showToast("Select the text to copy it. The clipboard needs HTTPS.");
  }
}
