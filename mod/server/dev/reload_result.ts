/** The outcome of loading edited functions. With `ok: false` the old code is still served. */
export type ReloadResult = { readonly ok: true } | { readonly ok: false; readonly message: string };
