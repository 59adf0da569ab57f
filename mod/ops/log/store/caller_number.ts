/** A number for each caller, for an index: shorter than the name, which stands in the run itself. */

/** A hash of 52 bits (two rounds of multiply and rotate, FNV-like). Two callers may share one: the name decides. */
export function callerNumber(principal: string): number {
  let low = 0x9e3779b1;
  let high = 0x85ebca6b;
  for (let index = 0; index < principal.length; index++) {
    const code = principal.charCodeAt(index);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high + code, 0xc2b2ae35) ^ (low >>> 15);
  }
  return (high >>> 0 & 0xfffff) * 0x100000000 + (low >>> 0);
}
