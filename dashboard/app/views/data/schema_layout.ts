/** Layout of the schema map: columns of tables, with referenced tables to the right of referencing ones. */
export const WIDTH_PX = 232;
export const HEAD_PX = 34;
export const FIELD_PX = 22;
export const PAD_PX = 9;
const GAP_X_PX = 72;
const GAP_Y_PX = 24;
/** Target height of the columns of unrelated tables. */
const COLUMN_PX = 900;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

export interface Reference {
  readonly from: string;
  readonly to: string;
}

export function boxesOf(
  tables: readonly { readonly name: string; readonly height: number }[],
  references: readonly Reference[],
): ReadonlyMap<string, Box> {
  const linked = new Set(references.flatMap(({ from, to }) => from === to ? [] : [from, to]));
  const rank = ranksOf([...linked], references);
  const boxes = new Map<string, Box>();
  const columns = Math.max(-1, ...rank.values()) + 1;
  const filled: number[] = Array.from({ length: columns }, () => 0);
  const place = (name: string, height: number, column: number) => {
    const y = filled[column] ?? 0;
    boxes.set(name, { x: column * (WIDTH_PX + GAP_X_PX), y, height });
    filled[column] = y + height + GAP_Y_PX;
  };
  for (const { name, height } of tables) {
    const column = rank.get(name);
    if (column !== undefined) place(name, height, column);
  }
  const tallest = Math.max(COLUMN_PX, ...filled);
  for (const { name, height } of tables) {
    if (rank.has(name)) continue;
    const free = filled.findIndex((used) => used === 0 || used + height <= tallest);
    place(name, height, free === -1 ? filled.length : free);
  }
  return boxes;
}

/** Length of the longest reference path to each table. Cycles are cut. */
function ranksOf(names: readonly string[], references: readonly Reference[]): Map<string, number> {
  const rank = new Map<string, number>();
  const visit = (name: string, way: ReadonlySet<string>): number => {
    const known = rank.get(name);
    if (known !== undefined) return known;
    const before = references.filter(({ from, to }) => to === name && from !== name && !way.has(from));
    const own = Math.max(-1, ...before.map(({ from }) => visit(from, new Set([...way, name])))) + 1;
    rank.set(name, own);
    return own;
  };
  for (const name of names) visit(name, new Set());
  return rank;
}
