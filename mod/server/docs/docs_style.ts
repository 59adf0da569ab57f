/** How the documentation looks, in light and in dark, on a screen of any width. */
export const docsStyle =
  `:root { color-scheme: light dark; --line: light-dark(#ddd, #444); --soft: light-dark(#f5f5f5, #222); }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 15rem minmax(0, 1fr); font: 1rem/1.6 system-ui, sans-serif; }
nav { padding: 1.5rem 1rem; border-right: 1px solid var(--line); position: sticky; top: 0; height: 100vh; overflow-y: auto; }
nav a { display: block; padding: 0.15rem 0.5rem; color: inherit; text-decoration: none; border-radius: 4px; }
nav a:first-child { font-weight: 600; margin-bottom: 0.5rem; }
nav a:hover, nav a[aria-current] { background: var(--soft); }
main { max-width: 52rem; padding: 1.5rem 2rem 4rem; min-width: 0; }
h1, h2, h3 { line-height: 1.25; scroll-margin-top: 1rem; }
h2 { margin-top: 2.5rem; }
code { font: 0.9em ui-monospace, monospace; background: var(--soft); padding: 0.1em 0.3em; border-radius: 3px; }
pre { background: var(--soft); padding: 0.8rem 1rem; border-radius: 6px; overflow-x: auto; }
pre code { background: none; padding: 0; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.7rem; border-bottom: 1px solid var(--line); }
tr:target, :target { background: light-dark(#fff3c4, #4a3f12); }
.contents { padding-left: 1.2rem; }
.contents span { opacity: 0.75; }
@media (max-width: 48rem) {
  body { display: block; }
  nav { position: static; height: auto; max-height: 12rem; border-right: 0; border-bottom: 1px solid var(--line); }
  main { padding: 1rem; }
}
`;
