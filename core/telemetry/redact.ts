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
// Name and separator: `Authorization: `, `"access_token":`, `['cookie', `, `client_secret=`. In JSON
// inside a JSON string, quotes are escaped once for each level.
const FIELD = String.raw`(?:${HEADER_NAMES}|${TOKEN_NAMES})(?:(?:\\*"|')\s*[:=,]|\s*[:=])\s*`;

interface Rule {
  readonly pattern: RegExp;
  readonly replacement: string;
}

const RULES: readonly Rule[] = [
  // A value in plain quotes ends at the next quote that is not escaped.
  {
    pattern: new RegExp(String.raw`(${FIELD}")(?:[^"\\]|\\[\s\S])*`, 'gi'),
    replacement: `$1${MASK}`,
  },
  // In escaped quotes it ends at a quote with as many backslashes; lost ends are bounded.
  {
    pattern: new RegExp(
      String.raw`(${FIELD}(?<q>\\+)")(?:[\s\S]{0,8192}?(?=(?<!\\)\k<q>")|[\s\S]{0,8192})`,
      'gi',
    ),
    replacement: `$1${MASK}`,
  },
  { pattern: new RegExp(`(${FIELD}')[^']*`, 'gi'), replacement: `$1${MASK}` },
  // Several cookies stand in one header.
  { pattern: /(cookie:\s*)[^"'\\\r\n]+/gi, replacement: `$1${MASK}` },
  {
    pattern: new RegExp(
      String.raw`(${FIELD})(?:(?:bearer|basic|dpop|negotiate)\s+)?[^\s"'\\,;&}\]]+`,
      'gi',
    ),
    replacement: `$1${MASK}`,
  },
  { pattern: /\b(bearer|basic|dpop)\s+[A-Za-z0-9._~+/=-]{6,}/gi, replacement: `$1 ${MASK}` },
  {
    pattern:
      /([?&#](?:code|state|token|access_token|refresh_token|id_token|key|sig|signature)=)[^&#\s"'\\]+/gi,
    replacement: `$1${MASK}`,
  },
  // Three base64url parts that start with {" are a JWT.
  { pattern: /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*/g, replacement: MASK },
  { pattern: /(:\/\/[^\s/:@"']{0,256}:)[^\s/@"']{1,1024}@/g, replacement: `$1${MASK}@` },
];

// A piece of each thing that a rule can match, in lower case. Nearly all lines have none and stop
// here; short pieces with rare letters cost a third of searching for the whole names.
const SUSPECT = /[=@]|oriz|k[ie][eyn]|n-id|d-ag|cret|ssert|verif|ce_co|passw|rer |sic |dpop|eyj/;

/** Live secret values of this process: tokens, client secrets, session ids. */
export interface SecretRegistry {
  /** Starts scrubbing a value; the returned function stops it. Counted, so equal values may overlap. */
  add(value: string): () => void;
  /** Replaces what looks like a secret, and every live value. */
  scrub(text: string): string;
  /** Another number after each change of the live values: what was scrubbed before is out of date. */
  readonly revision: number;
}

export function createSecretRegistry(): SecretRegistry {
  const live = new Map<string, number>();
  let revision = 0;
  return {
    get revision() {
      return revision;
    },
    add(value) {
      if (value.length < MIN_SECRET_LENGTH) return () => {};
      // In a JSON line the value may stand escaped.
      const forms = new Set([
        value,
        JSON.stringify(value).slice(1, -1),
        encodeURIComponent(value.toWellFormed()),
      ]);
      for (const form of forms) live.set(form, (live.get(form) ?? 0) + 1);
      revision += 1;
      return onceOnly(() => {
        revision += 1;
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
  if (!SUSPECT.test(text.toLowerCase())) return text;
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
