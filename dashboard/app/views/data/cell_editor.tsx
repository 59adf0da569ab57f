/** Inline editor of one field in the grid. Enter saves, Escape cancels. */
import { type KeyboardEvent, useState } from "react";
import { choicesOf, plainOf, type Schema } from "../../server/json_schema.ts";

export interface CellEditorProps {
  readonly name: string;
  readonly schema: Schema | undefined;
  readonly value: unknown;
  /** `undefined` removes the field. */
  readonly onSave: (value: unknown) => void;
  /** Called on Escape. */
  readonly onCancel: () => void;
  /** Called when the focus leaves the editor. */
  readonly onBlur: () => void;
}

export function CellEditor({ name, schema = {}, value, onSave, onCancel, onBlur }: CellEditorProps) {
  const plain = plainOf(schema);
  const ofText = plain["type"] === "string";
  const choices = choicesOf(schema) ?? (plain["type"] === "boolean" ? [true, false] : null);
  const [text, setText] = useState(() =>
    value === undefined ? "" : ofText && typeof value === "string" ? value : JSON.stringify(value)
  );
  const [wrong, setWrong] = useState(false);

  function onKey(event: KeyboardEvent): void {
    // Keep the grid from handling these keys.
    event.stopPropagation();
    if (event.key === "Escape") onCancel();
    if (event.key !== "Enter") return;
    event.preventDefault();
    const entered = enteredValue(text, ofText);
    if (entered.ok) onSave(entered.value);
    else setWrong(true);
  }

  const common = {
    className: "input cell-input",
    "aria-label": `New value of ${name}`,
    autoFocus: true,
    onKeyDown: onKey,
    onBlur,
    onClick: (event: { stopPropagation(): void }) => event.stopPropagation(),
  };
  if (choices !== null) {
    return (
      <select
        {...common}
        value={JSON.stringify(value)}
        onChange={(event) => onSave(JSON.parse(event.target.value))}
      >
        {!choices.includes(value) && (
          <option value={JSON.stringify(value)}>{JSON.stringify(value) ?? "–"}</option>
        )}
        {choices.map((choice) => (
          <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>{String(choice)}</option>
        ))}
      </select>
    );
  }
  return (
    <input
      {...common}
      aria-invalid={wrong || undefined}
      title={wrong ? "Invalid JSON" : undefined}
      value={text}
      spellCheck={false}
      onChange={(event) => {
        setText(event.target.value);
        setWrong(false);
      }}
    />
  );
}

type Entered = { readonly ok: true; readonly value: unknown } | { readonly ok: false };

/** Parses the input: taken literally for string fields, otherwise as JSON. An empty input removes the field. */
function enteredValue(text: string, ofText: boolean): Entered {
  if (ofText) return { ok: true, value: text };
  if (text.trim() === "") return { ok: true, value: undefined };
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return { ok: false };
  }
}
