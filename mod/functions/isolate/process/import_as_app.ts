/** Imports with the scope of the import map that applies to app code. */

/** A module outside all of our folders. */
const IMPORTER = "data:text/javascript,export const importAsApp=(specifier)=>import(specifier)";

export type ImportAsApp = (specifier: string) => Promise<Record<string, unknown>>;

/** Returns an `import` function that resolves like app code. */
export async function appImporter(): Promise<ImportAsApp> {
  const { importAsApp } = await import(IMPORTER) as { readonly importAsApp: ImportAsApp };
  return importAsApp;
}
