/** A quick check of a database file. It reads the first bytes only and leaves no files behind. */
import { APPLICATION_ID, FORMAT_VERSION } from "../connection.ts";

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;
const VERSION_AT = 60;
const APPLICATION_AT = 68;

/** Returns why the file is not a usable database, to follow "it"; `null` if its header is valid. */
export async function headerFault(path: string): Promise<string | null> {
  using file = await Deno.open(path);
  const bytes = new Uint8Array(HEADER_BYTES);
  let length = 0;
  while (length < HEADER_BYTES) {
    const read = await file.read(bytes.subarray(length));
    if (read === null) break;
    length += read;
  }
  const view = new DataView(bytes.buffer);
  if (length < HEADER_BYTES || new TextDecoder().decode(bytes.subarray(0, MAGIC.length)) !== MAGIC) {
    return "is no database";
  }
  if (view.getUint32(APPLICATION_AT) !== APPLICATION_ID) return "is a database of another program";
  return view.getUint32(VERSION_AT) > FORMAT_VERSION ? "is of a newer version of the server" : null;
}
