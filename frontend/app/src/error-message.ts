import { RequestRefused } from "sluicegate";

const BROWSER_ERRORS: Readonly<Record<string, string>> = {
  NotAllowedError:
    "The browser does not allow this page to use the microphone; allow it and try again.",
  NotFoundError: "There is no microphone; connect one and try again.",
  TimeoutError: "The server did not answer in time. Try again.",
  NotReadableError: "Another program is using the microphone; close it and try again.",
};

/** The message of an error, for a person. */
export function errorMessage(error: unknown): string {
  if (error instanceof RequestRefused) return error.message;
  if (error instanceof DOMException && error.name in BROWSER_ERRORS) {
    return BROWSER_ERRORS[error.name] ?? "";
  }
  if (error instanceof TypeError) return "The server cannot be reached. Try again in a moment.";
  return error instanceof Error ? error.message : "Something went wrong. Try again.";
}
