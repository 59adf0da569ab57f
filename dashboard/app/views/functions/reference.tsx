/** The API of the app: the types of a function, code that calls it, and what a caller needs. */
import { useState } from "react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import { adminSession } from "../../server/admin_session.ts";
import { href } from "../../shell/route.ts";
import { Button } from "../../ui/controls.tsx";
import { copyText } from "../../ui/copy_text.ts";
import { saveFile } from "../../ui/save_file.ts";
import type { Fields } from "../../ui/schema_form.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { Card } from "../../ui/view.tsx";
import { argumentsForCode } from "./arguments.ts";
import { snippetsOf, typeScriptOf } from "./snippets.ts";

export function FunctionReference({ fact, fields }: {
  readonly fact: FunctionFacts;
  /** The entered arguments; `null` if they are invalid. */
  readonly fields: Fields | null;
}) {
  const [chosen, setChosen] = useState("");
  const snippets = snippetsOf(fact, { args: argumentsForCode(fact, fields), origin: location.origin });
  const snippet = snippets.find(({ name }) => name === chosen) ?? snippets[0];
  if (snippet === undefined) return null;
  return (
    <Card
      title="API"
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
        {fact.visibility === "internal"
          ? <p className="quiet">Internal functions are no part of the API: only the server calls them.</p>
          : <ApiAccess />}
      </div>
    </Card>
  );
}

/** How to call the API of the app, without a function. */
export function ApiCard() {
  return (
    <Card title="API">
      <div className="stack">
        <p>
          Programs call the functions with <code>POST {location.origin}/api/query</code>,{" "}
          <code>/api/mutation</code> or{" "}
          <code>/api/action</code>. Choose a function for code in several languages, filled with its
          arguments.
        </p>
        <ApiAccess />
      </div>
    </Card>
  );
}

function ApiAccess() {
  return (
    <>
      <p className="quiet">
        The header <code>Authorization: Bearer</code> takes the access token of a user or an{" "}
        <a href={href(["deploying"])}>API key</a>. Leave it out to call without an account.{" "}
        <a href="./docs/http" target="_blank" rel="noopener">Sign in over HTTP</a>
      </p>
      <p className="quiet">
        <code>/api/openapi.json</code> describes all public functions as OpenAPI 3.1.{" "}
        <button type="button" className="link" onClick={() => void attempt(downloadOpenApi)}>
          Download openapi.json
        </button>{" "}
        and generate a client: <code>npx openapi-typescript openapi.json -o api.ts</code>,{" "}
        <a href="./docs/openapi" target="_blank" rel="noopener">other languages</a>
      </p>
    </>
  );
}

/** The document is for administrators, so that a link alone would not open it. */
async function downloadOpenApi(): Promise<void> {
  saveFile("openapi.json", await (await adminSession.fetch("/api/openapi.json")).blob());
}
