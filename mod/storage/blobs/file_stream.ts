import type { ByteRange } from "../../kit/byte_range.ts";
import { storageLimits } from "../limits.ts";

/** Streams the bytes `start` to `end`, both inclusive. Closes the file at the end, on cancel and on errors. */
export function fileStream(
  file: Deno.FsFile,
  { start, end }: ByteRange,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = end - start + 1;
  let sought = false;
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      try {
        if (!sought) {
          await file.seek(start, Deno.SeekMode.Start);
          sought = true;
        }
        const buffer = new Uint8Array(Math.min(left, storageLimits.readChunkBytes));
        const read = await file.read(buffer);
        if (read === null) throw new Error("The file is shorter than its document says");
        left -= read;
        controller.enqueue(buffer.subarray(0, read));
        if (left > 0) return;
        file.close();
        controller.close();
      } catch (error) {
        closeQuietly(file);
        controller.error(error);
      }
    },
    cancel: () => closeQuietly(file),
  });
}

function closeQuietly(file: Deno.FsFile): void {
  try {
    file.close();
  } catch {
    // Closed already.
  }
}
