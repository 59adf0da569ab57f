/** The steps of a test, with the reason of a failure. */
import { Icon } from "../../ui/controls.tsx";

export interface TestLine {
  readonly text: string;
  readonly error: boolean;
}

/** @param lines `null` while the test runs. */
export function TestSteps({ lines }: { readonly lines: readonly TestLine[] | null }) {
  if (lines === null) return <p className="quiet" role="status">Testing…</p>;
  return lines.map(({ text, error }) => (
    <p key={text} className={error ? "field-error" : undefined} role={error ? "alert" : undefined}>
      <span data-tone={error ? "bad" : "good"}>
        <Icon name={error ? "warn" : "check"} />
      </span>{" "}
      {text}
    </p>
  ));
}
