/** Answers requests that neither the service nor the app's routes answer. */
export interface Frontend {
  /** `pathname` is still encoded and begins with a slash. */
  respond(request: Request, pathname: string): Promise<Response>;
}
