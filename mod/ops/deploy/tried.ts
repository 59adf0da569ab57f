/** Code of the error that a successful dry run throws to roll back its writes. */
export const TRIED = "migration_tried";
