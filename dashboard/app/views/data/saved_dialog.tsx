/** Saves what is shown under a name, and removes what was saved: views of a table, or queries of the console. */
import { Button } from "../../ui/controls.tsx";
import { FormDialog } from "../../ui/dialog.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { Table } from "../../ui/view.tsx";

interface SavedDialogProps {
  readonly what: "view" | "query";
  readonly text: string;
  /** Names in use. */
  readonly names: readonly string[];
  readonly onSave: (name: string) => Promise<unknown>;
  readonly onRemove: (name: string) => Promise<unknown>;
  readonly onClose: () => void;
}

const PLURALS = { view: "views", query: "queries" } as const;

export function SavedDialog({ what, text, names, onSave, onRemove, onClose }: SavedDialogProps) {
  const title = what === "view" ? "View" : "Query";
  async function store(form: FormData): Promise<void> {
    const name = String(form.get("name")).trim();
    if (await attempt(() => onSave(name), `${title} "${name}" saved.`)) onClose();
  }
  return (
    <FormDialog
      title={`Saved ${PLURALS[what]}`}
      text={text}
      button={`Save ${what}`}
      onClose={onClose}
      onSubmit={store}
    >
      <div className="field">
        <label htmlFor="saved-name">Name</label>
        <input
          id="saved-name"
          className="input"
          name="name"
          required
          maxLength={200}
          pattern=".*\S.*"
          list="saved-names"
          autoComplete="off"
          autoFocus
        />
        <datalist id="saved-names">{names.map((name) => <option key={name} value={name} />)}</datalist>
        <p className="field-hint">An existing name replaces that {what}.</p>
      </div>
      {names.length > 0 && (
        <Table head={["Saved"]} actions>
          {names.map((name) => (
            <tr key={name}>
              <td className="wrap">{name}</td>
              <td className="number">
                <Button
                  aria-label={`Remove ${name}`}
                  onClick={() =>
                    void attempt(async () => {
                      await onRemove(name);
                      showToast(`${title} "${name}" removed.`);
                    })}
                >
                  Remove
                </Button>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </FormDialog>
  );
}
