/** Name of what isolates are told of settings: main knows it without the functions that read them. */
export const settingsFeature = "settings";
