/** An exported folder with stored files: their metadata, and the numbers of its tables. */
import { join } from "node:path";
import { z } from "zod";
import { decodeId } from "../../../engine/mod.ts";
import { statIfThere } from "../../../kit/durable_files.ts";
import { exportedFolder } from "../mod.ts";
import { FileFault, ImportError } from "./import_status.ts";
import { jsonLines } from "./row_batches.ts";

const tableLine = z.object({ name: z.string(), number: z.int().min(1) });

const fileLine = z.object({
  _id: z.string().refine((id) => decodeId(id) !== null, "is not an ID"),
  _creationTime: z.number(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  size: z.int().min(0),
  contentType: z.string().optional(),
  name: z.string().optional(),
  createdBy: z.string().optional(),
});

export interface FolderFile {
  readonly id: string;
  readonly creationTime: number;
  readonly contentType: string | null;
  readonly name: string | null;
  readonly createdBy: string | null;
  /** In hexadecimal. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  readonly path: string;
}

export const folderNames: readonly string[] = [exportedFolder.documents, exportedFolder.tables];

export class ExportedFolder {
  /** Numbers of all tables including system tables; empty if unknown. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Number of stored files; `null` if exported without files. */
  readonly fileCount: number | null;
  readonly #folder: string;

  private constructor(
    folder: string,
    { numbers, fileCount }: Pick<ExportedFolder, "numbers" | "fileCount">,
  ) {
    this.#folder = folder;
    this.numbers = numbers;
    this.fileCount = fileCount;
  }

  /** Reads a folder and checks that all files are complete. Throws an {@linkcode ImportError} naming the line. */
  static async open(folder: string): Promise<ExportedFolder> {
    const numbers = new Map<string, number>();
    const { tables, documents } = exportedFolder;
    if (await statIfThere(join(folder, tables)) !== null) {
      for await (const { name, number } of linesOf(join(folder, tables), tableLine)) {
        numbers.set(name, number);
      }
    }
    let fileCount: number | null = null;
    if (await statIfThere(join(folder, documents)) !== null) {
      fileCount = 0;
      const whole = new ExportedFolder(folder, { numbers, fileCount });
      for await (const { path, size, id } of whole.files()) {
        const found = await statIfThere(path);
        if (found?.isFile !== true || found.size !== size) {
          throw bad(documents, `the contents of ${id} are missing or incomplete in ${exportedFolder.files}`);
        }
        fileCount++;
      }
    }
    return new ExportedFolder(folder, { numbers, fileCount });
  }

  async *files(): AsyncGenerator<FolderFile, void, void> {
    const { documents, files } = exportedFolder;
    for await (const metadata of linesOf(join(this.#folder, documents), fileLine)) {
      const { _id: id, _creationTime: creationTime, sha256, size } = metadata;
      const { contentType = null, name = null, createdBy = null } = metadata;
      const path = join(this.#folder, files, id);
      yield { id, creationTime, contentType, name, createdBy, sha256, size, path };
    }
  }
}

async function* linesOf<Value>(
  path: string,
  shape: z.ZodType<Value>,
): AsyncGenerator<Value, void, void> {
  const { readable } = await Deno.open(path);
  try {
    for await (const { line, text } of jsonLines(readable)) {
      const parsed = shape.safeParse(jsonOf(text));
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        throw new FileFault(line, `${issue?.path.join(".") || "line"}: ${issue?.message ?? "invalid"}`);
      }
      yield parsed.data;
    }
  } catch (error) {
    if (error instanceof FileFault) throw bad(path, `line ${error.line}: ${error.message}`);
    throw error;
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bad(what: string, reason: string): ImportError {
  return new ImportError("bad_file", `Nothing was imported.\n${what}: ${reason}`);
}
