/** A button. `tone` marks primary, destructive and unobtrusive actions. */
import type { ComponentProps } from "react";

export type Tone = "accent" | "bad" | "plain";

export function Button({ tone, type = "button", className = "", ...rest }: ComponentProps<"button"> & {
  readonly tone?: Tone;
}) {
  return <button type={type} className={`button ${className}`} data-tone={tone} {...rest} />;
}
