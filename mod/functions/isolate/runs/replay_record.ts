/** The text of a replay record: a mutation's recorded answer, without log lines and stack. */
import type { CallError } from "../../outcome.ts";
import type { Ending } from "./ending.ts";

const { parse, stringify } = JSON;

/** Between the ts and a value, whose text is kept as it is. */
const VALUE = ',"value":';

/** `{"ts":5,"value":...}` or `{"ts":5,"error":...}`. */
export function encodeRecord(ending: Ending, ts: number): string {
  if (ending.ok) return `{"ts":${ts}${VALUE}${ending.text}}`;
  const { kind, message, data } = ending.error;
  return stringify({ ts, error: { kind, message, data } });
}

/** What {@linkcode encodeRecord} wrote. */
export function decodeRecord(record: string): { readonly ending: Ending; readonly ts: number } {
  const comma = record.indexOf(",");
  if (record.startsWith(VALUE, comma)) {
    const ts = Number(record.slice('{"ts":'.length, comma));
    return { ending: { ok: true, text: record.slice(comma + VALUE.length, -1) }, ts };
  }
  const { ts, error } = parse(record) as { ts: number; error: CallError };
  return { ending: { ok: false, error }, ts };
}
