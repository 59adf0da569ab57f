/** Attacks that are tested in other files, because they are not about latency or need more than a client. */

export interface Elsewhere {
  /** The rule of the contract; empty for one that is in the text of the package alone. */
  readonly rule: string;
  readonly name: string;
  /** The file, from the project's folder. */
  readonly test: string;
  /** The name of the test that the file must contain, or its beginning. */
  readonly named: string;
  readonly before: string;
}

export const elsewhere: readonly Elsewhere[] = [
  {
    rule: "",
    name: "app code that patches the validators of the service",
    test: "tests/functions/isolate/shared_objects_test.ts",
    named: "do not observe what the server validates, reads and writes",
    before: "read password hashes, made itself an administrator",
  },
  {
    rule: "",
    name: "an action that opens a descriptor of the process",
    test: "tests/functions/isolate/descriptors_test.ts",
    named: "the network access of actions cannot take over open connections",
    before: "forged answers, mutations as another user",
  },
  {
    rule: "",
    name: "a runner that answers for an action of another",
    test: "tests/functions/host/runner_pool_test.ts",
    named: "a runner can answer and call only for its own actions",
    before: "forged answers",
  },
  {
    rule: "",
    name: "closed folders by other spellings of their addresses",
    test: "tests/functions/isolate/spelling_test.ts",
    named: "by another spelling of its address",
    before: "%6d passed",
  },
  {
    rule: "FA14",
    name: "an archive with creation times in the future",
    test: "tests/engine/check_database_test.ts",
    named: 'rule: "FA14"',
    before: "the newest for ever",
  },
  {
    rule: "VE8",
    name: "a link in the functions folder to the secret key",
    test: "tests/functions/versions/version_store_test.ts",
    named: "VE8 a link that leads out of the functions folder is refused by its name",
    before: "app code read the key",
  },
  {
    rule: "VE1",
    name: "an edit on disk while the server runs",
    test: "tests/functions/host/versions_test.ts",
    named: "VE1 an edit on disk has no effect before it is loaded",
    before: "code of two versions at once",
  },
  {
    rule: "SF4",
    name: "a start without functions on an app's data",
    test: "tests/server/server_test.ts",
    named: "SF4 the bundled example has its own data folder",
    before: "the example added its tables",
  },
  {
    rule: "FA12",
    name: "a default for a field that documents lack",
    test: "tests/engine/schema_defaults_test.ts",
    named: "[FA12] a default for a field that documents lack is refused",
    before: "read without it, against the type",
  },
  {
    rule: "FA13",
    name: "a restored database with an index that computes, views, times out of range",
    test: "tests/engine/check_database_test.ts",
    named: 'rule: "FA13"',
    before: "64 s of checking; views passed",
  },
  {
    rule: "TH7",
    name: "an image of 2147483647 x 2147483647",
    test: "tests/storage/hostile_images_test.ts",
    named: "TH7 sizes beyond any decoder are too large as well",
    before: "invalid_image",
  },
  {
    rule: "HC12",
    name: "a mutation that is sent again over HTTP after its socket was lost",
    test: "tests/sync/http_calls_test.ts",
    named: "HC12 a mutation that names its request is recognised, and runs once",
    before: "rejected, though it may have committed",
  },
  {
    rule: "AT6",
    name: "two access tokens of one second",
    test: "tests/auth/refresh_test.ts",
    named: "AT6 no two access tokens are the same",
    before: "byte for byte the same",
  },
  {
    rule: "HC11",
    name: "paginationOpts as other clients send it",
    test: "tests/functions/api/pagination_test.ts",
    named: "HC11 paginationOpts ignores options of other clients",
    before: "refused",
  },
  {
    rule: "HC10",
    name: "a call for which a full queue has no slot",
    test: "tests/sync/http_calls_test.ts",
    named: "HC10 a rejected call gets the code overloaded and a Retry-After header",
    before: "500 Server Error",
  },
  {
    rule: "PE1",
    name: "main reads, writes, links and starts files of others",
    test: "tests/server/own_permissions_test.ts",
    named: "[PE1] [PE2] [PE3] a started server may use its own files",
    before: "everything was allowed",
  },
  {
    rule: "AE8",
    name: "a sign-out with a token that has just expired",
    test: "tests/auth/refresh_test.ts",
    named: "AE8 an expired access token identifies the session to end",
    before: "the session lived on for 30 days",
  },
  {
    rule: "BS9",
    name: "a restore without files, and later uploads",
    test: "tests/storage/uploads_test.ts",
    named: "BS9 contents of an earlier database state are kept while that state is stored",
    before: "files of the put-aside state were removed",
  },
];
