/** Imports by the part of the import map that is for app code. */

/** In a module that stands in none of our folders. */
const IMPORTER = "data:text/javascript,export const importAsApp=(specifier)=>import(specifier)";

export type ImportAsApp = (specifier: string) => Promise<Record<string, unknown>>;

/** What imports as app code does. */
export async function appImporter(): Promise<ImportAsApp> {
  const { importAsApp } = await import(IMPORTER) as { readonly importAsApp: ImportAsApp };
  return importAsApp;
}
