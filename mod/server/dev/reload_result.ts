/** Outcome of loading edited functions. With `ok: false`, the old code stays in use. */
export type ReloadResult = { readonly ok: true } | { readonly ok: false; readonly message: string };
