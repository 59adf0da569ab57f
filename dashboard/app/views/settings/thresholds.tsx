/** The thresholds of issues as a form, with a field for each. An empty field keeps the default. */
import { useId } from "react";
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";
import type { InputProps } from "./mail_server.tsx";

/** Labels by name in the setting, which is text such as `error-rate=5%,latency=2s`. */
const LABELS: Readonly<Record<string, string>> = {
  "error-rate": "Failed calls of a function",
  "latency": "Slowest 5% of a function's calls",
  "backup-age": "Age of the newest backup",
  "lag": "Replication lag",
  "disk-free": "Free disk space",
};

export function Thresholds({ setting: { text, given, defaultText }, entered, onEnter, input }: {
  readonly setting: SettingView;
  readonly entered: string | undefined;
  readonly onEnter: (text: string) => void;
  readonly input: InputProps;
}) {
  const id = useId();
  const { id: settingId, disabled, ...described } = input;
  const values = valuesOf(given?.text ?? entered ?? text ?? "");
  const defaults = valuesOf(defaultText ?? "");
  const change = (name: string, value: string) =>
    onEnter(
      Object.entries({ ...values, [name]: value }).filter(([, value]) => value !== "")
        .map(([name, value]) => `${name}=${value}`).join(","),
    );
  return (
    <div id={settingId} className="thresholds grow" role="group" tabIndex={-1} aria-label="Thresholds">
      {Object.entries(LABELS).map(([name, label]) => (
        <div key={name} className="field">
          <label htmlFor={`${id}-${name}`}>{label}</label>
          <input
            {...described}
            id={`${id}-${name}`}
            className="input"
            autoComplete="off"
            spellCheck={false}
            disabled={disabled}
            placeholder={`Default: ${defaults[name]}`}
            value={values[name] ?? ""}
            // A comma would begin another threshold.
            onChange={(event) => change(name, event.target.value.replaceAll(/[,=]/g, ""))}
          />
        </div>
      ))}
    </div>
  );
}

function valuesOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(",").map((part) => part.split("=").map((side) => side.trim())).filter(([, value]) => value),
  );
}
