// A server's own words for the log: short, quoted, and without the session id of the request,
// which servers like to repeat in their errors (R102). Only where the request held nothing of a
// caller's: an error message may repeat arguments too. Pure.

const MAX_CHARACTERS = 256;
/** Long enough that no session id which begins among the first characters is cut in two. */
const MAX_SEARCHED = 2_048;
const SESSION_HEADER = 'mcp-session-id';

export function quoteServer(text: string, requestHeaders: readonly string[]): string {
  const sessionId = sessionOf(requestHeaders);
  const searched = text.slice(0, MAX_SEARCHED);
  const clean = sessionId === undefined ? searched : searched.replaceAll(sessionId, '[session]');
  return JSON.stringify(clean.slice(0, MAX_CHARACTERS));
}

/** The session id that a request carries. */
export function sessionOf(requestHeaders: readonly string[]): string | undefined {
  for (let index = 0; index < requestHeaders.length; index += 2)
    if (requestHeaders[index] === SESSION_HEADER) return requestHeaders[index + 1];
  return undefined;
}
