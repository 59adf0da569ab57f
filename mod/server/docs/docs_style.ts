/** Style sheet of the documentation, for light and dark themes and screens of any width. */
export const docsStyle =
  `:root { color-scheme: light dark; --line: light-dark(#ddd, #444); --soft: light-dark(#f5f5f5, #222); }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 15rem minmax(0, 1fr) auto; font: 1rem/1.6 system-ui, sans-serif; }
nav, aside { padding: 1.5rem 1rem; position: sticky; top: 0; height: 100vh; overflow-y: auto; }
nav { border-right: 1px solid var(--line); }
aside { width: 14rem; font-size: 0.9em; }
nav h2, aside h2 { font-size: 0.8rem; text-transform: uppercase; letter-spacing: 0.04em; opacity: 0.7; margin: 1.2rem 0.5rem 0.2rem; }
nav input { width: 100%; font: inherit; padding: 0.3rem 0.5rem; margin-bottom: 0.8rem; border: 1px solid var(--line); border-radius: 4px; background: none; color: inherit; }
nav a, aside a { display: block; padding: 0.15rem 0.5rem; color: inherit; text-decoration: none; border-radius: 4px; }
nav form + a { font-weight: 600; }
nav a:hover, nav a[aria-current], aside a:hover { background: var(--soft); }
main { max-width: 52rem; padding: 1.5rem 2rem 4rem; min-width: 0; }
h1, h2, h3 { line-height: 1.25; scroll-margin-top: 1rem; }
main h2 { margin-top: 2.5rem; }
code { font: 0.9em ui-monospace, monospace; background: var(--soft); padding: 0.1em 0.3em; border-radius: 3px; }
pre { background: var(--soft); padding: 0.8rem 1rem; border-radius: 6px; overflow-x: auto; }
pre code { background: none; padding: 0; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.7rem; border-bottom: 1px solid var(--line); }
tr:target, :target { background: light-dark(#fff3c4, #4a3f12); }
.results span { display: block; opacity: 0.75; }
@media (max-width: 72rem) {
  body { grid-template-columns: 15rem minmax(0, 1fr); }
  aside { display: none; }
}
@media (max-width: 48rem) {
  body { display: block; }
  nav { position: static; height: auto; max-height: 14rem; border-right: 0; border-bottom: 1px solid var(--line); }
  main { padding: 1rem; }
}
`;
