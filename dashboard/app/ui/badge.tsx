/** A short label for a state or kind. */
import type { ReactNode } from "react";

export function Badge(
  { tone, children }: { readonly tone?: "good" | "warn" | "bad" | "accent"; readonly children: ReactNode },
) {
  return <span className="badge" data-tone={tone}>{children}</span>;
}
