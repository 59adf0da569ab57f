/** Name of the settings of files among those an isolate is given: main knows it without the functions that read them. */
export const storageFeature = "storage";
