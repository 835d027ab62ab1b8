// Whether this Node can run us. Asked before anything else is loaded: an older one would stop at newer
// syntax with a message about our code, when it is the Node that is wrong.

const OLDEST_MAJOR = 24;

/** What is wrong with Node `version` (`24.1.0`), in words for people. */
export function nodeFault(version: string): string | undefined {
  if (Number.parseInt(version, 10) >= OLDEST_MAJOR) return undefined;
  return `fairlead needs Node ${String(OLDEST_MAJOR)} or newer, and this is Node ${version}.`;
}
