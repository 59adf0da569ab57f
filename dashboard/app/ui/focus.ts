/** The keyboard focus after a dialog or the command palette has closed. */

/** Returns the element with the focus; for an item of a menu, which closes when it is chosen, the menu's button. */
export function focusedElement(): Element | null {
  const focused = document.activeElement;
  const button = focused?.closest("[role=menu]")?.getAttribute("aria-labelledby");
  return button ? document.getElementById(button) : focused;
}

/** Focuses the first candidate that can have the focus, otherwise the open dialog or the view, unless it is elsewhere. */
export function restoreFocus(...candidates: readonly (Element | null)[]): void {
  if (!isFocusLost()) return;
  const dialog = [...document.querySelectorAll("[role=dialog]")].at(-1) ?? null;
  const allowed = candidates.filter((element) => dialog === null || dialog.contains(element));
  for (const element of [...allowed, dialog, document.getElementById("view")]) {
    if (!(element instanceof HTMLElement) || element === document.body) continue;
    element.focus();
    if (!isFocusLost()) return;
  }
}

/** Scrolls to an element that appears, such as an error below a long form. Pass it as `ref`. */
export function scrollToShown(element: Element | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

export function isFocusLost(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}
