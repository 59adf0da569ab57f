/** Generates the OpenAPI 3.1 document of an app from the JSON Schemas of its functions. */
export { openApiDocument, type OpenApiOptions } from "./document.ts";
