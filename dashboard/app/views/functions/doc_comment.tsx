/** The doc comment of a function: paragraphs, parameters and other tags, and examples. */
import type { ReactNode } from "react";
import { docSections, inlineParts } from "./doc_sections.ts";

export function DocComment({ text }: { readonly text: string }) {
  const { description, tags } = docSections(text);
  return (
    <div className="doc">
      {description !== "" && <p>{formatted(description)}</p>}
      {tags.length > 0 && (
        <dl className="facts">
          {tags.map(({ label, name, text, code }, index) => (
            <div key={index}>
              <dt>{name === null ? label : <code>{name}</code>}</dt>
              <dd>{code ? <pre className="result" tabIndex={0}>{text}</pre> : formatted(text)}</dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}

function formatted(text: string): ReactNode {
  return inlineParts(text).map(({ text, code }, index) => code ? <code key={index}>{text}</code> : text);
}
