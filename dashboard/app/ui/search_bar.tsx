/** Search field and filters above a list. */
import type { ReactNode } from "react";

export interface Choice {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Values with their labels. */
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
