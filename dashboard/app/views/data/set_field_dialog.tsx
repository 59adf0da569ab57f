/**
 * Gives one field of several documents a new value, all or none; taking it back gives each its own again. What another has
 * changed meanwhile is not overwritten unseen: the person is told.
 */
import { type FormEvent, useState } from "react";
import { useMutation } from "syncline/react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { api } from "../../server/api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField } from "../../ui/field.tsx";
import { attempt, note } from "../../ui/notes.tsx";
import { SchemaForm } from "../../ui/schema_form.tsx";
import { count } from "../../ui/texts.tsx";
import { propertiesOf, requiredOf } from "../../server/json_schema.ts";
import type { Row } from "./row.ts";

export function SetFieldDialog({ table, rows, onClose }: {
  readonly table: TableOverview;
  /** The documents as the table shows them. */
  readonly rows: readonly Row[];
  readonly onClose: () => void;
}) {
  const patchMany = useMutation(api.data.patchMany);
  const properties = propertiesOf(table.schema);
  const [name, setName] = useState(Object.keys(properties)[0] ?? "");
  /** By name; a field that is not there goes. */
  const [value, setValue] = useState<Readonly<Record<string, unknown>>>({});
  const [opened] = useState(rows);
  /** Whether the person knows that another has changed something: then they set the field of what is shown now. */
  const [told, setTold] = useState(false);
  const [error, setError] = useState<string | null>(null);

  async function store(): Promise<void> {
    const change = name in value ? { set: { [name]: value[name] } } : { unset: [name] };
    const { before } = await patchMany({
      changes: (told ? rows : opened).map((row) => ({ id: row._id, ...change, ...seenAs(row[name]) })),
    });
    onClose();
    note(`${name} of ${count(rows.length)} documents is saved.`, {
      action: {
        text: "Undo",
        run: () => void attempt(() => patchMany({ changes: before.map(restored) }), "They are as they were."),
      },
    });
  }

  /** A field that is not there cannot be named as seen. */
  function seenAs(shown: unknown) {
    return shown === undefined ? {} : { seen: { [name]: shown } };
  }

  /** Nothing but the field: what others have changed meanwhile stays. */
  function restored(document: Readonly<Record<string, unknown>>) {
    const earlier = document[name];
    return {
      id: String(document["_id"]),
      ...(earlier === undefined ? { unset: [name] } : { set: { [name]: earlier } }),
      ...seenAs(value[name]),
    };
  }

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setError(null);
    try {
      await store();
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
      setTold(true);
    }
  }

  return (
    <Dialog
      open
      title={`Set a field of ${count(rows.length)} documents`}
      text="All of them are changed, or none."
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
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
