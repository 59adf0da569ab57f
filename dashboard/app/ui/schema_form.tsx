/** A form generated from the JSON Schema of an object, with one field per property. */
import { useState } from "react";
import {
  choicesOf,
  initialValueOf,
  isNullable,
  plainOf,
  propertiesOf,
  requiredOf,
  type Schema,
  tableOf,
  typeText,
} from "../server/json_schema.ts";
import { parseJson, parseObject } from "../server/json_text.ts";
import { deepEqual } from "../../../mod/protocol/deep_equal.ts";
import { href } from "../shell/route.ts";
import { SelectField, TextField } from "./controls.tsx";

export type Fields = Readonly<Record<string, unknown>>;

/** Parses the JSON text that a form edits; `null` unless it is an object. */
export function fieldsOf(text: string): Fields | null {
  try {
    return parseObject(text);
  } catch {
    return null;
  }
}

/** Switches between the form and the JSON editor of the same text. */
export function FormTabs({ label, form, fields, onForm }: {
  readonly label: string;
  readonly form: boolean;
  readonly fields: Fields | null;
  readonly onForm: (form: boolean) => void;
}) {
  return (
    <div>
      <div className="tabs" role="group" aria-label={label}>
        <button
          type="button"
          aria-pressed={form}
          // Switching would discard text that is not an object.
          disabled={fields === null}
          onClick={() => onForm(true)}
        >
          Form
        </button>
        <button type="button" aria-pressed={!form} onClick={() => onForm(false)}>JSON</button>
      </div>
    </div>
  );
}

export interface SchemaFormProps {
  readonly schema: Schema;
  readonly value: Fields;
  readonly onChange: (value: Fields) => void;
}

export function SchemaForm({ schema, value, onChange }: SchemaFormProps) {
  const properties = Object.entries(propertiesOf(schema));
  const required = new Set(requiredOf(schema));
  if (properties.length === 0) return <p className="quiet">No arguments.</p>;
  return (
    <div className="stack">
      {properties.map(([name, property]) => (
        <SchemaField
          key={name}
          name={name}
          schema={property}
          required={required.has(name)}
          value={value[name]}
          onChange={(next) => {
            const { [name]: _, ...others } = value;
            // Fields that are there keep their position.
            onChange(next === undefined ? others : { ...value, [name]: next });
          }}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
  readonly value: unknown;
  /** `undefined` omits the field. */
  readonly onChange: (value: unknown) => void;
}

function SchemaField(field: FieldProps) {
  const { name, schema, required, value, onChange } = field;
  const plain = plainOf(schema);
  const choices = choicesOf(schema);
  const hint = `${typeText(schema)}${required ? "" : ", optional"}`;
  if (choices !== null || plain["type"] === "boolean") {
    const all = [...choices ?? [true, false], ...(isNullable(schema) ? [null] : [])];
    return (
      <SelectField
        label={name}
        hint={hint}
        value={value === undefined ? "" : JSON.stringify(value)}
        onChange={(event) => onChange(event.target.value === "" ? undefined : JSON.parse(event.target.value))}
      >
        {(!required || value === undefined) && <option value="">(not set)</option>}
        {all.map((choice) => (
          <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>{String(choice)}</option>
        ))}
      </SelectField>
    );
  }
  if (plain["type"] === "string") {
    const table = tableOf(schema);
    return (
      <TextField
        label={name}
        hint={table === null ? hint : (
          <>
            ID of a document in <a href={href(["data", table])}>{table}</a>
            {required ? "" : ", optional"}
          </>
        )}
        value={typeof value === "string" ? value : ""}
        spellCheck={false}
        onChange={(event) => {
          const { value: text } = event.target;
          onChange(text !== "" || required ? text : undefined);
        }}
      />
    );
  }
  if (plain["type"] === "number" || plain["type"] === "integer") {
    return (
      <TextField
        label={name}
        hint={hint}
        type="number"
        step={plain["type"] === "integer" ? 1 : "any"}
        value={typeof value === "number" ? value : ""}
        onChange={(event) => onChange(event.target.value === "" ? undefined : Number(event.target.value))}
      />
    );
  }
  return <JsonField {...field} hint={hint} />;
}

/** Values without a dedicated field are edited as JSON. Invalid JSON is not passed on. */
function JsonField(
  { name, schema, value, required, hint, onChange }: FieldProps & { readonly hint: string },
) {
  const [shown, setShown] = useState(() => ({ value, text: textOf(value) }));
  const [error, setError] = useState<string | null>(null);
  // Another value was loaded into the form.
  if (!deepEqual(shown.value, value)) {
    setShown({ value, text: textOf(value) });
    setError(null);
  }
  return (
    <TextField
      label={name}
      hint={`${hint}, as JSON`}
      error={error}
      value={shown.text}
      placeholder={JSON.stringify(initialValueOf(schema))}
      spellCheck={false}
      onChange={({ target: { value: text } }) => {
        try {
          const entered = text === "" && !required ? undefined : parseJson(text);
          setShown({ value: entered, text });
          onChange(entered);
          setError(null);
        } catch (failure) {
          setShown({ value, text });
          setError(failure instanceof Error ? failure.message : "Invalid JSON");
        }
      }}
    />
  );
}

function textOf(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(value);
}
