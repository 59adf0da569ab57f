/** Bundled wherever app code imports zod: the instance that isolates provide, so that the service accepts its schemas. */
export * from "syncline:zod";
export { default } from "syncline:zod";
