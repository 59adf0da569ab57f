/** Parses and validates client frames. */
import { socketLimits } from "../../limits.ts";
import { type ClientMessage, clientMessageSchema } from "../../protocol/client_messages.ts";
import { closeCodes } from "./close_codes.ts";

export type ClientFrame =
  | { readonly ok: true; readonly message: ClientMessage }
  | { readonly ok: false; readonly fault: string; readonly closeCode: number };

/** Characters of client text quoted in an error. */
const QUOTED_CHARS_MAX = 100;

export function readClientFrame(text: string): ClientFrame {
  if (text.length > socketLimits.frameCharsMax) {
    const fault = `frame too long: ${text.length} characters, the limit is ${socketLimits.frameCharsMax}`;
    return { ok: false, fault, closeCode: closeCodes.tooLong };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "not JSON";
    return { ok: false, fault: `malformed JSON: ${quote(reason)}`, closeCode: closeCodes.malformed };
  }
  const parsed = clientMessageSchema.safeParse(value);
  if (parsed.success) return { ok: true, message: parsed.data };
  const type = typeof value === "object" && value !== null ? (value as { type?: unknown }).type : undefined;
  const issue = parsed.error.issues[0];
  const fault = issue?.path.length === 1 && issue.path[0] === "type" && issue.code === "invalid_union"
    ? `unknown message type ${quote(JSON.stringify(type) ?? "undefined")}`
    : `${typeof type === "string" ? quote(type) : "message"}: ${place(issue?.path ?? [])}${
      issue?.message ?? "invalid"
    }`;
  return { ok: false, fault, closeCode: closeCodes.protocol };
}

function place(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "";
  const text = path.map((step) => typeof step === "number" ? `[${step}]` : `.${String(step)}`).join("");
  return `${text.replace(/^\./, "")}: `;
}

function quote(text: string): string {
  return (text.length > QUOTED_CHARS_MAX ? `${text.slice(0, QUOTED_CHARS_MAX)}...` : text).toWellFormed();
}
