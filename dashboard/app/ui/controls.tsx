/** Controls: buttons, icons, badges, fields and the search bar. */
import { type ComponentProps, type ReactNode, useEffect, useId, useState } from "react";
import type { AdminRole } from "../../../mod/functions/admin_roles.ts";
import { useRefusal } from "./access.tsx";
import { ICON_PATHS, type IconName } from "./icon_paths.ts";

export type { IconName };

/** Stroke icons on a 16 px grid, in the colour of the surrounding text. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "more" ? 2.4 : 1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={ICON_PATHS[name]} />
    </svg>
  );
}

/** A short label for a state or kind. */
export function Badge(
  { tone, children }: { readonly tone?: "good" | "warn" | "bad" | "accent"; readonly children: ReactNode },
) {
  return <span className="badge" data-tone={tone}>{children}</span>;
}

export type Tone = "accent" | "bad" | "plain";

/** A button. `tone` marks primary, destructive and unobtrusive actions. */
export function Button(
  { tone, type = "button", className = "", busy = false, needs, disabled, title, children, ...rest }:
    & ComponentProps<"button">
    & {
      readonly tone?: Tone;
      /** Role without which the button is disabled. */
      readonly needs?: AdminRole | undefined;
      /** Whether its action is running: the button is disabled and says so. */
      readonly busy?: boolean;
    },
) {
  const refusal = useRefusal(needs);
  return (
    <button
      type={type}
      className={`button ${className}`}
      data-tone={tone}
      disabled={refusal !== undefined || busy || disabled}
      title={refusal ?? title}
      aria-busy={busy || undefined}
      {...rest}
    >
      {busy ? <Busy>{children}</Busy> : children}
    </button>
  );
}

/** Time after which a button explains why it waits. */
const WAIT_MS = 1_500;

function Busy({ children }: { readonly children: ReactNode }) {
  const [waits, setWaits] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setWaits(true), WAIT_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <>
      <span className="spinner" aria-hidden="true" /> {waits ? "Waiting for the server…" : children}
    </>
  );
}

interface FieldTexts {
  readonly label: string;
  readonly hint?: ReactNode;
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

/** Says that a form is read-only if the administrator's role is too low for it. */
export function ReadOnlyNote({ needs }: { readonly needs: AdminRole }) {
  const refusal = useRefusal(needs);
  if (refusal === undefined) return null;
  return (
    <p className="row quiet">
      <Icon name="lock" /> Read-only: {refusal.charAt(0).toLowerCase() + refusal.slice(1)}.
    </p>
  );
}

/** Disables the fields in it if the administrator's role is too low. */
export function EditableFields(
  { needs, children }: { readonly needs: AdminRole; readonly children: ReactNode },
) {
  return <fieldset className="stack" disabled={useRefusal(needs) !== undefined}>{children}</fieldset>;
}

export interface Choice {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly (readonly [value: string, text: string])[];
}

export function SearchBar({ label, placeholder, value, onChange, choices, children }: {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly choices: readonly Choice[];
  readonly children?: ReactNode;
}) {
  return (
    <div className="row" role="search">
      <input
        className="input grow"
        type="search"
        placeholder={placeholder}
        aria-label={label}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      {choices.map((choice) => <ChoiceField key={choice.label} {...choice} />)}
      {children}
    </div>
  );
}

export function ChoiceField({ label, value, onChange, options }: Choice) {
  return (
    <select
      className="input fit"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  );
}
