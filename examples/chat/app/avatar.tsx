/** A person's letter on a colour of their own. */
import type { CSSProperties } from "react";

export function Avatar({ name }: { readonly name: string }) {
  let hue = 0;
  for (const letter of name) hue = (hue * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  return (
    <span className="avatar" aria-hidden="true" style={{ "--hue": hue } as CSSProperties}>
      {[...name][0]?.toUpperCase() ?? "?"}
    </span>
  );
}
