/**
 * What runs as an app, told by paths below one folder, so that it stays true wherever that folder is copied: the entries of
 * the isolates' import map and the table of CommonJS files.
 */
import { pathToFileURL } from "node:url";
import type { CommonJsFile, PackageTable, PackageTarget } from "../wire/package_table.ts";

/**
 * Where an import leads: `./path` is a file below the folder, as a path and not as a URL; anything else an address as it
 * stands.
 */
export type CodeAddress = string;

export interface AppCode {
  /** Addresses of files that an import by their own address leads to, by `./path`. */
  readonly files: Readonly<Record<string, CodeAddress>>;
  /** Addresses by specifier, by the folder whose files they are for, as `./path`. */
  readonly scopes: Readonly<Record<string, Readonly<Record<string, CodeAddress>>>>;
  /** Its files are named by their path, its modules by address. */
  readonly table: PackageTable;
}

/** Entries of an import map, by the URL of the folder they are for; `""`: for every folder. */
export type MapEntries = Map<string, Map<string, string>>;

/** The code of an app without packages. */
export const plainCode: AppCode = {
  files: {},
  scopes: {},
  table: { files: {}, required: [], deferred: [], refusals: {} },
};

/** Whether an app uses packages, or anything else that its isolates have to be told of. */
export function usesPackages({ files, scopes, table }: AppCode): boolean {
  return [files, scopes, table.files, table.refusals].some((part) => Object.keys(part).length > 0);
}

/** The entries of the import map for code that lies in this folder, an absolute path. */
export function mapEntries({ files, scopes }: AppCode, folder: string): MapEntries {
  const entries: MapEntries = new Map();
  const everywhere = Object.entries(files);
  if (everywhere.length > 0) {
    const known = everywhere.map(([path, address]) => [url(folder, path), placed(folder, address)] as const);
    entries.set("", new Map(known));
  }
  for (const [scope, map] of Object.entries(scopes)) {
    const known = Object.entries(map).map(([specifier, address]) =>
      [specifier, placed(folder, address)] as const
    );
    entries.set(`${url(folder, scope)}/`, new Map(known));
  }
  return entries;
}

/** The table for code that lies in this folder: files by absolute path, modules by URL. */
export function placedTable({ table }: AppCode, folder: string): PackageTable {
  const targets = (of: CommonJsFile["requires"]) =>
    Object.fromEntries(Object.entries(of).map(([specifier, target]) => [specifier, place(target)]));
  const place = (target: PackageTarget): PackageTarget => {
    if ("file" in target) return { file: absolute(folder, target.file) };
    return "module" in target ? { module: placed(folder, target.module) } : target;
  };
  return {
    files: Object.fromEntries(
      Object.entries(table.files).map(([path, { requires, imports }]) =>
        [absolute(folder, path), { requires: targets(requires), imports: targets(imports) }] as const
      ),
    ),
    required: table.required.map((address) => placed(folder, address)),
    deferred: table.deferred.map((address) => placed(folder, address)),
    refusals: table.refusals,
  };
}

function placed(folder: string, address: CodeAddress): string {
  return address.startsWith("./") ? url(folder, address) : address;
}

function url(folder: string, path: string): string {
  return pathToFileURL(absolute(folder, path)).href;
}

function absolute(folder: string, path: string): string {
  return path === "." ? folder : `${folder}/${path.replace(/^\.\//, "")}`;
}
