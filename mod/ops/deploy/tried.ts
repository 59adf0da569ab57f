/** Code of the error that a successful dry run throws to roll back its writes. */
export const DRY_RUN_DONE = "migration_tried";
