/** The value of a filter by a reference: a document found by its label or ID. */
import { useEffect, useId, useState } from "react";
import { useQuery } from "syncline/react";
import type { ReferenceChoice } from "../../../../mod/ops/admin/isolate_functions/references.ts";
import { queryOnce } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";

/** Documents are requested when the text has been the same for this long. */
const ASKED_AFTER_MS = 200;

export function ReferenceValue({ label, table, value, onChange }: {
  readonly label: string;
  readonly table: string;
  /** ID of the document. */
  readonly value: string;
  readonly onChange: (id: string) => void;
}) {
  const id = useId();
  const [text, setText] = useState(value);
  const [found, setFound] = useState<readonly ReferenceChoice[]>([]);
  const named = useQuery(api.data.labels, value === "" ? "skip" : { ids: [value] })?.[value];
  // The address has the ID only.
  useEffect(() => {
    if (named) setText((before) => before === value ? named : before);
  }, [named]);
  useEffect(() => {
    let over = false;
    const timer = setTimeout(() => {
      queryOnce(api.data.choices, { table, text: text.trim() })
        .then((choices) => over || setFound(choices), () => {});
    }, ASKED_AFTER_MS);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [table, text]);
  // Labels that several documents have do not identify one.
  const isUnique = (choice: ReferenceChoice) =>
    found.filter(({ label }) => label === choice.label).length === 1;
  const textOf = (choice: ReferenceChoice) =>
    choice.label !== null && isUnique(choice) ? choice.label : choice.id;
  const chosen = found.find((choice) => choice.id === text.trim() || textOf(choice) === text.trim());
  useEffect(() => {
    if (text.trim() === "") {
      if (value !== "") onChange("");
    } else if (chosen !== undefined && chosen.id !== value) onChange(chosen.id);
  }, [chosen?.id, text]);
  return (
    <>
      <input
        className="input narrow"
        placeholder={`Find in ${table}`}
        aria-label={label}
        list={id}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      <datalist id={id}>
        {found.map((choice) => <option key={choice.id} value={textOf(choice)}>{choice.id}</option>)}
      </datalist>
    </>
  );
}
