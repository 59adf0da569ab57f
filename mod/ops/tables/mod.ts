/** What exports and imports of tables have in common. */
export { type TableFormat, tableFormats } from "./formats.ts";
export { importModes } from "./import/modes.ts";
