/** Encodes replay records: a mutation's recorded answer, without log lines and stack. */
import type { CallError, Ending } from "../outcome.ts";

const { parse, stringify } = JSON;

/** Separates the ts from the value, whose JSON is stored unchanged. */
const VALUE = ',"value":';

/** Returns `{"ts":5,"value":...}` or `{"ts":5,"error":...}`. */
export function encodeRecord(ending: Ending, ts: number): string {
  if (ending.ok) return `{"ts":${ts}${VALUE}${ending.text}}`;
  const { kind, message, data } = ending.error;
  return stringify({ ts, error: { kind, message, data } });
}

/** Decodes the output of {@linkcode encodeRecord}. */
export function decodeRecord(record: string): { readonly ending: Ending; readonly ts: number } {
  const comma = record.indexOf(",");
  if (record.startsWith(VALUE, comma)) {
    const ts = Number(record.slice('{"ts":'.length, comma));
    return { ending: { ok: true, text: record.slice(comma + VALUE.length, -1) }, ts };
  }
  const { ts, error } = parse(record) as { ts: number; error: CallError };
  return { ending: { ok: false, error }, ts };
}
