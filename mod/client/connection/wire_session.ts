/** Protocol versions of one socket: what was requested, and what has been applied (PC3). */
import type { Authenticate, ModifyQuerySet, QuerySetModification } from "../../protocol/client_messages.ts";
import type { Transition } from "../../protocol/server_messages.ts";
import { initialVersion, sameVersion, type StateVersion } from "../../protocol/state_version.ts";

export class WireSession {
  /** `maxObservedTs` of the socket's Connect. */
  readonly observedTs: number;
  /** Version after the applied Transitions. */
  #version: StateVersion = initialVersion;
  #querySetSent = 0;
  #identitySent = 0;
  /** Version of the ModifyQuerySet that re-added queries of earlier sockets; 0 if there were none. */
  #readdVersion = 0;
  /** The token confirmed on this socket; changed by Transitions that apply an Authenticate. */
  #confirmedToken: string | null = null;
  /** Sent tokens that are not confirmed yet, oldest first. */
  #unconfirmedTokens: (string | null)[] = [];

  constructor(observedTs: number) {
    this.observedTs = observedTs;
  }

  get version(): StateVersion {
    return this.#version;
  }

  /** The newest token sent on this socket. */
  get token(): string | null {
    const newest = this.#unconfirmedTokens.at(-1);
    return newest === undefined ? this.#confirmedToken : newest;
  }

  get confirmedToken(): string | null {
    return this.#confirmedToken;
  }

  get unconfirmedTokens(): readonly (string | null)[] {
    return this.#unconfirmedTokens;
  }

  /** Number of Transitions that the server owes. */
  get unanswered(): number {
    return this.#querySetSent - this.#version.querySet + this.#identitySent - this.#version.identity;
  }

  /**
   * Mutations up to this ts are visible in the local results; -1 until the queries of earlier sockets are restored (SG4, CL8).
   */
  get visibleTs(): number {
    return this.#version.querySet >= this.#readdVersion ? this.#version.ts : -1;
  }

  /** The first ModifyQuerySet of a socket, which adds all live queries. */
  readd(modifications: QuerySetModification[]): ModifyQuerySet {
    const message = this.modify(modifications);
    this.#readdVersion = message.newVersion;
    return message;
  }

  modify(modifications: QuerySetModification[]): ModifyQuerySet {
    const baseVersion = this.#querySetSent++;
    return { type: "ModifyQuerySet", baseVersion, newVersion: this.#querySetSent, modifications };
  }

  authenticate(token: string | null): Authenticate {
    const baseVersion = this.#identitySent++;
    this.#unconfirmedTokens.push(token);
    return { type: "Authenticate", baseVersion, token };
  }

  /** Returns why a Transition cannot be applied to the current version, or `null`. */
  misfit({ startVersion, endVersion }: Transition): string | null {
    if (!sameVersion(startVersion, this.#version)) {
      return `Transition starts at ${versionText(startVersion)}, the client is at ${
        versionText(this.#version)
      }`;
    }
    const follows = endVersion.ts >= startVersion.ts &&
      endVersion.querySet >= startVersion.querySet && endVersion.querySet <= this.#querySetSent &&
      endVersion.identity >= startVersion.identity && endVersion.identity <= this.#identitySent;
    return follows
      ? null
      : `Transition ends at ${versionText(endVersion)} after ${versionText(startVersion)}`;
  }

  /** Advances to the end of an applied Transition. Returns whether it confirmed an Authenticate. */
  advance(endVersion: StateVersion): boolean {
    const confirmed = endVersion.identity - this.#version.identity;
    this.#version = endVersion;
    if (confirmed === 0) return false;
    this.#confirmedToken = this.#unconfirmedTokens[confirmed - 1] ?? null;
    this.#unconfirmedTokens = this.#unconfirmedTokens.slice(confirmed);
    return true;
  }
}

function versionText({ querySet, identity, ts }: StateVersion): string {
  return `${querySet}/${identity}/${ts}`;
}
