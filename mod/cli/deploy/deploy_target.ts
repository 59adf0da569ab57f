/** A server that is deployed to, by its address and a deploy key. */
import {
  BundleError,
  type DeployChanges,
  type DeployedVersions,
  type DeployResult,
} from "../../ops/deploy/mod.ts";
import type { OptionValues } from "../../config/options.ts";
import { StartError } from "../../config/start_error.ts";

/** Documents do not match the schema of the version to serve. */
export class SchemaMismatchError extends StartError {
  readonly changes: DeployChanges | null;

  constructor(message: string, changes: DeployChanges | null) {
    super(message);
    this.changes = changes;
  }
}

/** A request that takes longer has failed; a bundle may take its time. */
const ANSWER_MS = 60_000;
const DEPLOY_MS = 30 * 60_000;

export class DeployTarget {
  readonly #url: string;
  readonly #key: string;

  /** Throws a `StartError` that says what is missing. */
  constructor({ url, deployKey }: Pick<OptionValues, "url" | "deployKey">) {
    if (url === null) {
      throw new StartError("Name the server with --url https://app.example.com", { code: "deploy" });
    }
    if (deployKey === null) {
      throw new StartError(
        "Give a deploy key in SYNCLINE_DEPLOY_KEY: syncline deploy-key create <name> makes one on the server",
        { code: "deploy" },
      );
    }
    this.#url = url;
    this.#key = deployKey;
  }

  async versions(): Promise<DeployedVersions> {
    return await this.#ask("GET", "/versions") as never;
  }

  async deploy(
    packed: ReadableStream<Uint8Array>,
    { dryRun, keepFrontend }: { readonly dryRun: boolean; readonly keepFrontend: boolean },
  ): Promise<DeployResult> {
    return await this.#ask("PUT", `?dryRun=${dryRun}&keepFrontend=${keepFrontend}`, {
      body: packed,
      ms: DEPLOY_MS,
    }) as never;
  }

  async rollBack(
    hash: string | null,
    { dryRun }: { readonly dryRun: boolean },
  ): Promise<DeployResult> {
    const body = JSON.stringify({ hash, dryRun });
    return await this.#ask("POST", "/rollback", { body, ms: DEPLOY_MS }) as never;
  }

  async setVariables(
    changes: Readonly<Record<string, string>>,
  ): Promise<{ readonly overridden: readonly string[] }> {
    return await this.#ask("PATCH", "/env", { body: JSON.stringify(changes) }) as never;
  }

  async #ask(
    method: string,
    path: string,
    { body, ms = ANSWER_MS }: {
      readonly body?: BodyInit | ReadableStream<Uint8Array>;
      readonly ms?: number;
    } = {},
  ): Promise<unknown> {
    let response;
    let answer;
    try {
      response = await fetch(`${this.#url}/api/admin/functions${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${this.#key}`,
          ...(typeof body === "string" && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body: body as BodyInit }),
        redirect: "error",
        signal: AbortSignal.timeout(ms),
      });
      answer = await response.json();
    } catch (error) {
      if (error instanceof BundleError) throw new StartError(error.message, { cause: error });
      if (response !== undefined) {
        throw new StartError(
          `${this.#url} is not the address of a Syncline server (status ${response.status})`,
          { code: "deploy" },
        );
      }
      throw new StartError(
        `${this.#url} cannot be reached: ${reason(error)}. Nothing is known to have changed`,
        {
          cause: error,
        },
      );
    }
    if (response.ok) return answer;
    const { errorMessage = "", errorData = null } = answer as {
      readonly errorMessage?: string;
      readonly errorData?: { readonly code: string; readonly data: unknown } | null;
    };
    switch (errorData?.code) {
      case "schema_mismatch":
        throw new SchemaMismatchError(errorMessage, errorData.data as DeployChanges | null);
      case "invalid_token":
        throw new StartError(
          `${this.#url} does not know the deploy key: it was revoked, or is another server's`,
          { code: "deploy" },
        );
      case "not_found":
        throw new StartError(
          `${this.#url} is a server that cannot be deployed to: it is older than this command`,
          { code: "deploy" },
        );
      default:
        throw new StartError(errorMessage || `${this.#url} answered with status ${response.status}`);
    }
  }
}

function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  return cause === "" || message.includes(cause) ? message : `${message}: ${cause}`;
}
