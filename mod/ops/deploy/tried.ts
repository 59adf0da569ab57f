/** What a dry run of a migration found, as the error that takes its writes back: its code. */
export const TRIED = "migration_tried";
