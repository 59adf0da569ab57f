/** A part of the output, and the number of documents it completes. A piece without text is a pause. */
export interface ExportPiece {
  readonly text: string;
  readonly documents: number;
}
