/** Content codings of responses (RFC 9110, sections 8.4 and 12.5.3). */

/** Supported codings, the more effective first. */
export const CODINGS = ["br", "gzip"] as const;

export type Coding = typeof CODINGS[number];

const PLAIN_TYPES =
  /^(?:text\/|application\/(?:javascript|json|xml|wasm|manifest\+json|vnd\.ms-fontobject)|image\/(?:bmp|x-icon|vnd\.microsoft\.icon)|font\/(?:ttf|otf|collection)|[^;]*\+(?:json|xml))/;

/** Whether compression makes bodies of this type much smaller. */
export function isCompressible(type: string): boolean {
  return PLAIN_TYPES.test(type);
}

/** Codings that `Accept-Encoding` allows, the preferred one first. */
export function acceptedCodings(header: string | null): readonly Coding[] {
  if (header === null) return [];
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim());
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    weights.set(name, weight === undefined ? 1 : Number(weight) || 0);
  }
  const weightOf = (coding: string) => weights.get(coding) ?? weights.get("*") ?? 0;
  return CODINGS.filter((coding) => weightOf(coding) > 0).sort((a, b) => weightOf(b) - weightOf(a));
}
