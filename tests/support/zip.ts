/** Creates zip archives. */
import { Buffer } from "node:buffer";
import { crc32, deflateRawSync } from "node:zlib";

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
const DEFLATED = 8;
const LOCAL_BYTES = 30;
const CENTRAL_BYTES = 46;
const END_BYTES = 22;

/** The bytes of an archive of these files, each compressed. */
export function zipOf(files: Readonly<Record<string, string | Uint8Array>>): Uint8Array<ArrayBuffer> {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [path, contents] of Object.entries(files)) {
    const name = Buffer.from(path);
    const bytes = Buffer.from(contents);
    const packed = deflateRawSync(bytes);
    const local = Buffer.alloc(LOCAL_BYTES);
    local.writeUInt32LE(LOCAL, 0);
    writeFacts(local, 4, { name, bytes, packed });
    const central = Buffer.alloc(CENTRAL_BYTES);
    central.writeUInt32LE(CENTRAL, 0);
    central.writeUInt16LE(VERSION, 4);
    writeFacts(central, 6, { name, bytes, packed });
    central.writeUInt32LE(offset, 42);
    parts.push(local, name, packed);
    directory.push(central, name);
    offset += LOCAL_BYTES + name.length + packed.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(END_BYTES);
  end.writeUInt32LE(END, 0);
  end.writeUInt16LE(directory.length / 2, 8);
  end.writeUInt16LE(directory.length / 2, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(offset, 16);
  return new Uint8Array(Buffer.concat([...parts, entries, end]));
}

/** Fields common to a local header and the directory. */
function writeFacts(
  header: Buffer,
  at: number,
  { name, bytes, packed }: { readonly name: Buffer; readonly bytes: Buffer; readonly packed: Buffer },
): void {
  header.writeUInt16LE(VERSION, at);
  header.writeUInt16LE(DEFLATED, at + 4);
  header.writeUInt32LE(crc32(bytes), at + 10);
  header.writeUInt32LE(packed.length, at + 14);
  header.writeUInt32LE(bytes.length, at + 18);
  header.writeUInt16LE(name.length, at + 22);
}
