/** Formats and modes shared by exports and imports. */
export { importModes, type TableFormat, tableFormats } from "./formats.ts";
