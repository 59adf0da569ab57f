/** Help: keyboard shortcuts and links to the documentation. */
import { Fragment } from "react";
import { Dialog } from "../ui/dialog.tsx";

const SHORTCUTS:
  readonly (readonly [title: string, keys: readonly (readonly [keys: string, text: string])[]])[] = [
    ["Everywhere", [
      ["Ctrl+K or ⌘K", "Go to a view, table, function, user, setting or document"],
      ["Ctrl+S or ⌘S", "Save the open form"],
      ["Escape", "Close a dialog or menu"],
      ["?", "Show this help"],
    ]],
    ["Tables of documents", [
      ["Arrow keys", "Move between cells"],
      ["Home, End", "First and last row"],
      ["Enter", "Open the document"],
      ["F2", "Edit the field"],
      ["Space", "Select the document"],
    ]],
    ["Logs", [
      ["Arrow keys", "Move between the bars"],
      ["Shift+Arrow keys, Enter", "Choose a time range"],
    ]],
  ];

const DOCS: readonly (readonly [page: string, title: string])[] = [
  ["dashboard", "Dashboard"],
  ["functions", "Functions"],
  ["deploying", "Deploying"],
  ["backups", "Backups and restores"],
  ["troubleshooting", "Troubleshooting"],
];

export function Shortcuts({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog open title="Help" onClose={onClose}>
      <div className="stack">
        {SHORTCUTS.map(([title, keys]) => (
          <Fragment key={title}>
            <h2>{title}</h2>
            <dl className="facts shortcuts">
              {keys.map(([key, text]) => (
                <Fragment key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{text}</dd>
                </Fragment>
              ))}
            </dl>
          </Fragment>
        ))}
        <h2>Documentation</h2>
        <ul className="plain">
          {DOCS.map(([page, title]) => (
            <li key={page}>
              <a href={`./docs/${page}`} target="_blank">{title}</a>
            </li>
          ))}
          <li>
            <a href="./docs/" target="_blank">All pages</a>
          </li>
        </ul>
      </div>
    </Dialog>
  );
}
