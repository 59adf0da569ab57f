/** A word that stands out: a state, a kind. */
import type { ReactNode } from "react";

export function Badge(
  { tone, children }: { readonly tone?: "good" | "warn" | "bad" | "accent"; readonly children: ReactNode },
) {
  return <span className="badge" data-tone={tone}>{children}</span>;
}
