/** The key that saves the form shown. */
import { useEffect, useRef } from "react";

/** Saves with Ctrl+S or ⌘S. @param save `null` if there is nothing to save. */
export function useSaveKey(save: (() => void) | null): void {
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.metaKey || event.ctrlKey) || event.key.toLowerCase() !== "s") return;
      event.preventDefault();
      latest.current?.();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}
