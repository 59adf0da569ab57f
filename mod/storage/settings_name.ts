/** Key of the storage settings passed to isolates, in a file without further imports. */
export const storageFeature = "storage";
