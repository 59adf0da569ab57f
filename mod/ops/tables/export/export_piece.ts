/** What the text of a table is made of. */

/** The next part of the text and how many documents it ends. A piece without text is a pause in a long look ahead. */
export interface ExportPiece {
  readonly text: string;
  readonly documents: number;
}
