/** What a provider is to the flow: an address to send a browser to, and somebody who says who came back. */
import type { BroughtIdentity } from "../isolate_functions/identities/identity_rows.ts";

/** The secrets of one sign-in. None is stored: they follow from its state and the server's key. */
export interface FlowSecrets {
  /** Where the provider sends the browser back to. */
  readonly callback: string;
  readonly state: string;
  readonly codeVerifier: string;
  readonly nonce: string;
}

/** What the browser brought back. */
export interface Return extends FlowSecrets {
  readonly parameters: URLSearchParams;
}

/** Who came back, and what else is said of them. */
export interface Identified {
  readonly identity: BroughtIdentity;
  /** As the provider has them: the app may look at them, nothing is decided by them here. */
  readonly claims: Readonly<Record<string, unknown>>;
}

export interface Provider {
  /** Whether it answers with a form that the browser posts. */
  readonly formPost: boolean;
  /** Whether a user with the same address, verified on both sides, is the same person. */
  readonly linkByEmail: boolean;
  /** Where a sign-in begins. Throws {@linkcode ProviderError}. */
  authorizationUrl(flow: FlowSecrets): Promise<string>;
  /** Who came back. Throws {@linkcode ProviderError}. */
  identify(back: Return): Promise<Identified>;
}

export type ProviderErrorCode = "access_denied" | "provider_error" | "provider_unavailable";

/** A sign-in that a provider refused, or whose answer is not believed. The message is for the log, without secrets. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly code: ProviderErrorCode;

  constructor(code: ProviderErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
