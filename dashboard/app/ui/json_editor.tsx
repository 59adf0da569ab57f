/** JSON editor with syntax colours, inline errors and completion of property names from a JSON Schema. */
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, linter } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { getNonce } from "get-nonce";
import { useEffect, useLayoutEffect, useRef } from "react";
import { issuesOf, propertyNames } from "../server/json_schema.ts";
import { duplicateKey } from "../server/json_text.ts";

/** Uses design tokens, so it adapts to the theme. */
const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--accent)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

export interface JsonEditorProps {
  readonly label: string;
  readonly value: string;
  /** Schema of the value, or `null`. */
  readonly schema: Readonly<Record<string, unknown>> | null;
  readonly readOnly?: boolean;
  readonly onChange: (text: string) => void;
}

export function JsonEditor({ label, value, schema, readOnly = false, onChange }: JsonEditorProps) {
  const parent = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const onChangeRef = useRef(onChange);
  onChangeRef.current = onChange;
  useEffect(() => {
    if (parent.current === null) return;
    const editor = new EditorView({
      parent: parent.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          EditorView.cspNonce.of(getNonce() ?? ""),
          EditorState.readOnly.of(readOnly),
          // The scrolled region must be focusable.
          EditorView.contentAttributes.of({
            "aria-label": label,
            "aria-readonly": String(readOnly),
            tabindex: "0",
          }),
          EditorView.lineWrapping,
          history(),
          json(),
          bracketMatching(),
          syntaxHighlighting(colours),
          linter(jsonParseLinter()),
          linter(duplicateDiagnostics),
          linter((view) => schemaDiagnostics(view, schema)),
          autocompletion({ override: [(context) => names(context, schema)] }),
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) onChangeRef.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
    // The editor owns the text while typing; it is re-created only for another schema, label or role.
  }, [schema, label, readOnly]);
  // In the same task as the render. A later effect would replace what was typed in between with the value of the render.
  useLayoutEffect(() => {
    const editor = view.current;
    if (editor === null || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  return <div ref={parent} className="editor" />;
}

/** Marks a field name that occurs twice in an object. */
function duplicateDiagnostics({ state: { doc } }: EditorView): Diagnostic[] {
  const text = doc.toString();
  try {
    JSON.parse(text);
  } catch {
    return [];
  }
  const found = duplicateKey(text);
  return found === null
    ? []
    : [{ from: found.from, to: found.to, severity: "error", message: `"${found.name}" occurs twice` }];
}

/** Marks schema violations at the first occurrence of the property's name. */
function schemaDiagnostics({ state: { doc } }: EditorView, schema: JsonEditorProps["schema"]): Diagnostic[] {
  if (schema === null) return [];
  const text = doc.toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  return issuesOf(value, schema).map(({ path, message }) => {
    const name = path.findLast((part) => typeof part === "string");
    const at = name === undefined ? -1 : text.indexOf(JSON.stringify(name));
    const [from, to] = at === -1 ? [0, Math.min(1, text.length)] : [at, at + JSON.stringify(name).length];
    return { from, to, severity: "error", message: `${path.join(".") || "value"}: ${message}` };
  });
}

function names(context: CompletionContext, schema: JsonEditorProps["schema"]): CompletionResult | null {
  const word = context.matchBefore(/"[\w$-]*/);
  if (word === null || schema === null) return null;
  return {
    from: word.from,
    options: propertyNames(schema).map((name) => ({ label: `"${name}"`, type: "property" })),
  };
}
