/** The part of the driver's interface in use. Its package of types includes types of Node, which differ from Deno's. */
export interface ClientOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password?: string | (() => string);
  readonly database: string;
  readonly ssl?: boolean | { readonly ca: string };
  readonly pipeline?: boolean;
  readonly application_name?: string;
  readonly keepAlive?: boolean;
  readonly query_timeout?: number;
  readonly statement_timeout?: number;
  readonly idle_in_transaction_session_timeout?: number;
  readonly connectionTimeoutMillis?: number;
}

export interface QueryResult<Row> {
  readonly rows: Row[];
  readonly rowCount: number | null;
}

export declare class Client {
  /** The transport. */
  readonly connection: { readonly stream: { destroy(): void } };
  constructor(options: ClientOptions);
  connect(): Promise<void>;
  end(): Promise<void>;
  // deno-lint-ignore no-explicit-any -- rows are checked by the reader
  query<Row = any>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>>;
  // deno-lint-ignore no-explicit-any -- the same
  query<Row = any>(
    query: {
      readonly name: string;
      readonly text: string;
      readonly values: readonly unknown[];
    },
  ): Promise<QueryResult<Row>>;
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "end", listener: () => void): this;
  on(event: "notification", listener: (notice: { readonly channel: string }) => void): this;
}

declare const pg: { readonly Client: typeof Client };
export default pg;
