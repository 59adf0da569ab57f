/** A document as the grid shows it. */
export type Row = Readonly<Record<string, unknown>> & {
  readonly _id: string;
  readonly _creationTime: number;
};
