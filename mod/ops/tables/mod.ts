/** Formats and modes shared by exports and imports. */
export { type TableFormat, tableFormats } from "./formats.ts";
export { importModes } from "./import/modes.ts";
