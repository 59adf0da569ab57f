/** The text of a message, with URLs as links. */
import { Fragment } from "react";

/** Up to the next space; what a sentence puts behind an address is cut off below. */
const ADDRESS = /\bhttps?:\/\/[^\s<>"]+/gi;
const CLOSING: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };

export interface Piece {
  readonly text: string;
  /** Where it leads; `null` for plain text. */
  readonly href: string | null;
}

export function LinkedText({ children }: { readonly children: string }) {
  return pieces(children).map(({ text, href }, index) =>
    href === null
      ? <Fragment key={index}>{text}</Fragment>
      : <a key={index} href={href} target="_blank" rel="noopener noreferrer nofollow ugc">{text}</a>
  );
}

/** A text as plain pieces and addresses, which are of `http:` and `https:` only. */
export function pieces(text: string): readonly Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(ADDRESS)) {
    const address = withoutPunctuation(match[0]);
    const href = hrefOf(address);
    if (href === null) continue;
    if (match.index > end) found.push({ text: text.slice(end, match.index), href: null });
    found.push({ text: address, href });
    end = match.index + address.length;
  }
  return end < text.length || found.length === 0 ? [...found, { text: text.slice(end), href: null }] : found;
}

/** "See (https://example.com/a)." names the page without the bracket and the full stop. */
function withoutPunctuation(address: string): string {
  for (let text = address;;) {
    const last = text.at(-1) ?? "";
    const opening = CLOSING[last];
    const isOpen = opening !== undefined && text.split(opening).length >= text.split(last).length;
    if (isOpen || (opening === undefined && !/[.,;:!?'*_~]/.test(last))) return text;
    text = text.slice(0, -1);
  }
}

function hrefOf(address: string): string | null {
  const url = URL.parse(address);
  return url !== null && /^https?:$/.test(url.protocol) && url.hostname !== "" ? url.href : null;
}
