/** How to call a function: its description, types and code to copy. */
import { useState } from "react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import { Button } from "../../ui/controls.tsx";
import { copyText } from "../../ui/copy_text.ts";
import type { Fields } from "../../ui/schema_form.tsx";
import { Card } from "../../ui/view.tsx";
import { snippetsOf, typeScriptOf } from "./snippets.ts";

export function FunctionReference({ fact, fields }: {
  readonly fact: FunctionFacts;
  /** The entered arguments; `null` if they are invalid. */
  readonly fields: Fields | null;
}) {
  const [chosen, setChosen] = useState("");
  const snippets = snippetsOf(fact, { args: fields ?? {}, origin: location.origin });
  const snippet = snippets.find(({ name }) => name === chosen) ?? snippets[0];
  if (snippet === undefined) return null;
  return (
    <Card
      title="Call it"
      actions={<Button onClick={() => void copyText(snippet.text, "Code copied.")}>Copy</Button>}
    >
      <div className="stack">
        <pre className="result" aria-label="Types" tabIndex={0}>
          {`(args: ${typeScriptOf(fact.args)}) => ${typeScriptOf(fact.returns)}`}
        </pre>
        <div className="tabs" role="group" aria-label="Language">
          {snippets.map(({ name }) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === snippet.name}
              onClick={() => setChosen(name)}
            >
              {name}
            </button>
          ))}
        </div>
        <pre className="result" aria-label="Code" tabIndex={0}>{snippet.text}</pre>
      </div>
    </Card>
  );
}
