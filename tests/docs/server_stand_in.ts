/** The parts of Next.js and SvelteKit that the documentation uses. */

interface Cookies {
  get(name: string): { readonly value: string } | undefined;
}

/** `next/headers`. */
export declare function cookies(): Promise<Cookies>;

/** `@sveltejs/kit`. */
export interface RequestEvent {
  readonly cookies: { get(name: string): string | undefined };
}

declare global {
  /** The part that Vite adds. */
  interface ImportMeta {
    readonly env: Readonly<Record<string, string | undefined>>;
  }
}
