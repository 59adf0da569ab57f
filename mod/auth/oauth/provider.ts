/** The provider port: where to redirect a browser, and who returned. */
import type { BroughtIdentity } from "../isolate_functions/identities/identity_rows.ts";

/** Secrets of one sign-in. Not stored: they are derived from the state and the server's key. */
export interface FlowSecrets {
  /** Callback URL of the provider. */
  readonly callback: string;
  readonly state: string;
  readonly codeVerifier: string;
  readonly nonce: string;
}

/** Parameters the browser returned with. */
export interface Return extends FlowSecrets {
  readonly parameters: URLSearchParams;
}

/** The identity that returned, with additional claims. */
export interface Identified {
  readonly identity: BroughtIdentity;
  /** Raw claims of the provider for the app's hooks; nothing is decided by them. */
  readonly claims: Readonly<Record<string, unknown>>;
}

export interface Provider {
  /** Whether it responds with a form that the browser posts. */
  readonly formPost: boolean;
  /** Whether to link a user with the same address, if both sides have verified it. */
  readonly linkByEmail: boolean;
  /** Returns the URL of a new sign-in. Throws {@linkcode ProviderError}. */
  authorizationUrl(flow: FlowSecrets): Promise<string>;
  /** Returns the identity that returned. Throws {@linkcode ProviderError}. */
  identify(back: Return): Promise<Identified>;
}

export type ProviderErrorCode = "access_denied" | "provider_error" | "provider_unavailable";

/** The provider refused a sign-in, or its response is invalid. The message is for the log and contains no secrets. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly code: ProviderErrorCode;

  constructor(code: ProviderErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
