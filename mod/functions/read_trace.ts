/** The reads of a traced query: one entry for each distinct read. */

export interface ReadTrace {
  readonly table: string;
  /** `by_id` for documents read by ID. */
  readonly index: string;
  /** Fields with conditions that the index served: equal values, then at most one range. */
  readonly fields: readonly string[];
  /** Fields that the filter checked in the documents read. */
  readonly filtered: readonly string[];
  /** How often it ran. */
  readonly calls: number;
  readonly documents: number;
  /** Documents that passed the filter. */
  readonly returned: number;
  /** Whether it read the table without a condition that an index served. */
  readonly scan: boolean;
  /** How to read fewer documents, or `null`. */
  readonly advice: string | null;
}
