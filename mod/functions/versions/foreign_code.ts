/** Validates manifests from elsewhere, so that they cannot bypass the import map of isolates. */
import type { AppCode } from "../packages/app_code.ts";
import type { PackageTarget } from "../wire/package_table.ts";
import { isBelow } from "./manifest.ts";

/** Prefix of stub modules. The map resolves their imports. */
const STAND_IN = "data:text/javascript,";

/** Throws for addresses other than files of the version and stubs, and for paths outside of it. */
export function checkForeignCode({ files, scopes, table }: AppCode): void {
  const entries = [files, ...Object.values(scopes)];
  for (const path of [...Object.keys(files), ...Object.keys(scopes)]) checkPlace(path);
  for (const address of entries.flatMap((record) => Object.values(record))) {
    if (!address.startsWith(STAND_IN)) checkPlace(address);
  }
  for (const [path, { requires, imports }] of Object.entries(table.files)) {
    check(isBelow(path), path);
    for (const target of [...Object.values(requires), ...Object.values(imports)]) checkTarget(target);
  }
  for (const module of [...table.required, ...table.deferred]) checkModule(module);
}

function checkTarget(target: PackageTarget): void {
  if ("file" in target) check(isBelow(target.file), target.file);
  else if ("module" in target) checkModule(target.module);
}

/** A bare specifier, resolved by the import map. */
function checkModule(module: string): void {
  if (module.startsWith("./")) checkPlace(module);
  else check(module.startsWith(STAND_IN) || !/^(?!node:)[a-z][a-z0-9+.-]*:|^\//i.test(module), module);
}

function checkPlace(address: string): void {
  check(address === "." || (address.startsWith("./") && isBelow(address.slice(2))), address);
}

function check(holds: boolean, address: string): void {
  if (!holds) throw new Error(`"${address.slice(0, 200)}" is not an address within the bundle`);
}
