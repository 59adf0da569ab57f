/** Key of the settings passed to isolates, in a file without further imports. */
export const settingsFeature = "settings";
