// The last step before a log line leaves the process: text that looks like a credential, and
// secret values that are live in this process, are replaced. This is the net, not the wall; the
// wall is that nobody logs foreign objects, headers, arguments or results (see log.ts).

const MASK = '[redacted]';
/** Shorter values would hit ordinary words. */
const MIN_SECRET_LENGTH = 8;

const HEADER_NAMES =
  'proxy-authorization|authorization|set-cookie|cookie|mcp-session-id|x-api-key|x-fairlead-agent';
const TOKEN_NAMES =
  'access_token|refresh_token|id_token|client_secret|client_assertion|subject_token|actor_token|assertion|code_verifier|device_code|password|api_key|apikey';
// In a JSON log line a quote may be escaped once or more: text of JSON inside a string.
const QUOTE = String.raw`(?:\\*")`;

interface Rule {
  readonly pattern: RegExp;
  readonly replacement: string;
}

const RULES: readonly Rule[] = [
  // "authorization":"…", ["authorization","…"], access_token = …, Mcp-Session-Id: …
  {
    pattern: new RegExp(
      String.raw`((?:${HEADER_NAMES}|${TOKEN_NAMES})(?:${QUOTE}|')?\s*[:=,]\s*)(?:${QUOTE}[^"\\]*(?:\\+[^"\\][^"\\]*)*|'[^']*|(?:(?:bearer|basic|dpop|negotiate)\s+)?[^\s"\\,;&}\]']+)`,
      'gi',
    ),
    replacement: `$1"${MASK}`,
  },
  { pattern: /\b(bearer|basic|dpop)\s+[A-Za-z0-9._~+/=-]{6,}/gi, replacement: `$1 ${MASK}` },
  {
    pattern:
      /([?&#](?:code|state|token|access_token|refresh_token|id_token|key|sig|signature)=)[^&#\s"'\\]+/gi,
    replacement: `$1${MASK}`,
  },
  // Three base64url parts that start with {" are a JWT.
  { pattern: /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*/g, replacement: MASK },
  { pattern: /(:\/\/[^\s/:@"']*:)[^\s/@"']+@/g, replacement: `$1${MASK}@` },
];

// One cheap pass that says whether any rule can match; nearly every line stops here.
const SUSPECT = new RegExp(
  `${HEADER_NAMES}|${TOKEN_NAMES}|bearer|basic |dpop|eyJ|[?&#](?:code|state|token|key|sig)|://[^/"\\s]*@`,
  'i',
);

/** Live secret values of this process: tokens, client secrets, session ids. */
export interface SecretRegistry {
  /** Starts scrubbing a value; the returned function stops it. Counted, so equal values may overlap. */
  add(value: string): () => void;
  /** Replaces what looks like a secret, and every live value. */
  scrub(text: string): string;
}

export function createSecretRegistry(): SecretRegistry {
  const live = new Map<string, number>();
  return {
    add(value) {
      if (value.length < MIN_SECRET_LENGTH) return () => {};
      // In a JSON line the value may stand escaped.
      const forms = new Set([value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)]);
      for (const form of forms) live.set(form, (live.get(form) ?? 0) + 1);
      return onceOnly(() => {
        for (const form of forms) release(live, form);
      });
    },
    scrub(text) {
      let result = text;
      for (const value of live.keys()) {
        if (result.includes(value)) result = result.replaceAll(value, MASK);
      }
      return scrubText(result);
    },
  };
}

/** Replaces text that looks like a credential. */
export function scrubText(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return RULES.reduce(
    (result, { pattern, replacement }) => result.replace(pattern, replacement),
    text,
  );
}

function release(live: Map<string, number>, form: string): void {
  const count = (live.get(form) ?? 0) - 1;
  if (count > 0) live.set(form, count);
  else live.delete(form);
}

function onceOnly(run: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    run();
  };
}
