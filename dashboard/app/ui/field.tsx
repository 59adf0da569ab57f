/** Form fields with a label, a hint and an error. */
import { type ComponentProps, useId } from "react";

interface FieldTexts {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly error?: string | null | undefined;
}

export function TextField({ label, hint, error, ...input }: FieldTexts & ComponentProps<"input">) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        className="input"
        aria-invalid={error ? true : undefined}
        aria-describedby={hint || error ? `${id}-more` : undefined}
        {...input}
      />
      <More id={id} hint={hint} error={error} />
    </div>
  );
}

export function SelectField(
  { label, hint, error, children, ...select }: FieldTexts & ComponentProps<"select">,
) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        className="input"
        aria-describedby={hint || error ? `${id}-more` : undefined}
        {...select}
      >
        {children}
      </select>
      <More id={id} hint={hint} error={error} />
    </div>
  );
}

function More({ id, hint, error }: Omit<FieldTexts, "label"> & { readonly id: string }) {
  if (!hint && !error) return null;
  return (
    <div id={`${id}-more`}>
      {error ? <p className="field-error">{error}</p> : <p className="field-hint">{hint}</p>}
    </div>
  );
}

export function CheckField({ label, ...input }: { readonly label: string } & ComponentProps<"input">) {
  return (
    <label className="check">
      <input type="checkbox" {...input} /> {label}
    </label>
  );
}
