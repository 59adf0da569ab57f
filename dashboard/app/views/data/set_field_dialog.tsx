/**
 * Sets one field of several documents atomically. Undo restores each previous value. Conflicting changes by others are
 * reported before they are overwritten.
 */
import { type FormEvent, useState } from "react";
import { useMutation } from "syncline/react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { api, seenField } from "../../server/api.ts";
import { Button, SelectField } from "../../ui/controls.tsx";
import { CancelButton, Dialog } from "../../ui/dialog.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { SchemaForm } from "../../ui/schema_form.tsx";
import { count } from "../../ui/format.tsx";
import { propertiesOf, requiredOf } from "../../server/json_schema.ts";
import type { Row } from "./grid_row.tsx";

export function SetFieldDialog({ table, rows, onClose }: {
  readonly table: TableOverview;
  /** The selected rows with their current values. */
  readonly rows: readonly Row[];
  readonly onClose: () => void;
}) {
  const patchMany = useMutation(api.data.patchMany);
  const properties = propertiesOf(table.schema);
  const [name, setName] = useState(Object.keys(properties)[0] ?? "");
  /** The new value by field name; an absent field is removed. */
  const [value, setValue] = useState<Readonly<Record<string, unknown>>>({});
  const [opened] = useState(rows);
  /** Whether a conflict was reported. Saving again then overwrites the current values. */
  const [conflictShown, setConflictShown] = useState(false);
  const [error, setError] = useState<string | null>(null);

  async function store(): Promise<void> {
    const change = name in value ? { set: { [name]: value[name] } } : { unset: [name] };
    const { before } = await patchMany({
      changes: (conflictShown ? rows : opened).map((row) => ({
        id: row._id,
        ...change,
        seen: seenField(name, row[name]),
      })),
    });
    onClose();
    showToast(`Set ${name} on ${count(rows.length)} documents`, {
      action: {
        text: "Undo",
        run: () => void attempt(() => patchMany({ changes: before.map(restored) }), "Undone"),
      },
    });
  }

  /** Restores only this field, keeping other changes. */
  function restored(document: Readonly<Record<string, unknown>>) {
    const earlier = document[name];
    return {
      id: String(document["_id"]),
      ...(earlier === undefined ? { unset: [name] } : { set: { [name]: earlier } }),
      seen: seenField(name, value[name]),
    };
  }

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setError(null);
    try {
      await store();
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
      setConflictShown(true);
    }
  }

  return (
    <Dialog
      open
      title={`Set field on ${count(rows.length)} documents`}
      text="Either all documents are changed or none."
      unsaved={name in value}
      onClose={onClose}
      footer={
        <>
          <CancelButton />
          <Button type="submit" form="set-field" tone="accent">Set field</Button>
        </>
      }
    >
      <form id="set-field" className="stack" onSubmit={(event) => void submit(event)}>
        <SelectField
          label="Field"
          value={name}
          onChange={(event) => {
            setName(event.target.value);
            setValue({});
          }}
        >
          {Object.keys(properties).map((field) => <option key={field} value={field}>{field}</option>)}
        </SelectField>
        <SchemaForm
          key={name}
          schema={{
            type: "object",
            properties: { [name]: properties[name] ?? {} },
            required: requiredOf(table.schema).filter((field) => field === name),
          }}
          value={value}
          onChange={setValue}
        />
      </form>
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}
