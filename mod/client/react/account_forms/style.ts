/** Styles of the account forms. Their custom properties are the theme; `color-scheme` of the page chooses light or dark. */
import { createElement, type ReactElement } from "react";

/** Class of the outer element of each form. */
export const ROOT = "syncline-account";

const css = `.${ROOT} {
  --_text: var(--syncline-text, light-dark(#1a1d23, #e9ebef));
  --_quiet: var(--syncline-quiet, light-dark(#5b6270, #a3aab8));
  --_field: var(--syncline-field, light-dark(#fff, #16191f));
  --_border: var(--syncline-border, light-dark(#8a909c, #717886));
  --_line: var(--syncline-line, light-dark(#dfe2e8, #2e333c));
  --_accent: var(--syncline-accent, light-dark(#3754d3, #8ea4ff));
  --_on-accent: var(--syncline-on-accent, light-dark(#fff, #0e1433));
  --_bad: var(--syncline-bad, light-dark(#b3261e, #ff938b));
  --_radius: var(--syncline-radius, 0.6rem);
  display: grid;
  gap: 1rem;
  min-width: 0;
  margin: 0;
  padding: 0;
  background: none;
  border: 0;
  color: var(--_text);
  font: var(--syncline-font, inherit);
  line-height: 1.5;
  text-align: start;
  overflow-wrap: anywhere;
  &.syncline-settings { gap: 2.5rem; }
  & * { box-sizing: border-box; min-width: 0; }
  & h2 { margin: 0; font-size: 1.25em; line-height: 1.3; }
  & p { margin: 0; padding: 0; color: inherit; }
  & p:empty { position: absolute; }
  & form, & .syncline-group { display: grid; gap: 1rem; margin: 0; }
  & .syncline-field { display: grid; gap: 0.3rem; }
  & label { display: block; margin: 0; font-weight: 600; font-size: 0.95em; }
  & small, & .syncline-quiet { color: var(--_quiet); font-size: 0.9em; }
  & input, & button {
    width: auto;
    margin: 0;
    padding: 0.6em 0.9em;
    font: inherit;
    color: inherit;
    background: var(--_field);
    border: 1px solid var(--_border);
    border-radius: var(--_radius);
  }
  & input { width: 100%; }
  & input[aria-invalid="true"] { border-color: var(--_bad); }
  & button { cursor: pointer; }
  & button:hover { border-color: var(--_accent); }
  & button[aria-disabled="true"] { opacity: 0.6; cursor: default; }
  & .syncline-main {
    color: var(--_on-accent);
    background: var(--_accent);
    border-color: var(--_accent);
    font-weight: 600;
  }
  & .syncline-link {
    justify-self: start;
    padding: 0.15em 0;
    color: var(--_accent);
    background: none;
    border: 0;
    text-align: start;
    text-decoration: underline;
  }
  & :focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; }
  & .syncline-problem { color: var(--_bad); }
  & .syncline-row { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
  & .syncline-list { display: block; margin: 0; padding: 0; list-style: none; }
  & .syncline-list > li {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem;
    align-items: center;
    padding: 0.75rem 0;
    background: none;
    border: 0;
    border-radius: 0;
    border-top: 1px solid var(--_line);
  }
  & .syncline-list > li > :first-child { flex: 1 1 12rem; display: grid; }
  & .syncline-codes { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: 0.25rem 1rem; }
  & .syncline-codes > li { display: block; padding: 0; border: 0; }
  & code, & .syncline-codes { font: 1em ui-monospace, monospace; }
  & img { display: block; width: 12rem; max-width: 100%; padding: 0.75rem; background: #fff; border-radius: var(--_radius); }
  & .syncline-waiting { animation: 0.2s syncline-appear 0.4s backwards; }
}
@keyframes syncline-appear { from { opacity: 0; } }
`;

/** The style element, which React adds to the page once. Pages with a Content-Security-Policy name its nonce in a `meta` element. */
export function Style(): ReactElement {
  const nonce = globalThis.document?.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce;
  return createElement("style", { href: ROOT, precedence: "low", nonce }, css);
}
