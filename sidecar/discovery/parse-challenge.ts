// WWW-Authenticate: several challenges in one header or in many (RFC 9110 section 11.6.1), and what
// the Bearer one says (RFC 6750 section 3, RFC 9728 section 5.1). Pure. A header that can be read
// in two ways says nothing.

export interface Challenge {
  /** Lower case. */
  readonly scheme: string;
  /** Names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

export interface BearerChallenge {
  /** As it stands there: a candidate, possibly relative. */
  readonly resourceMetadata: string | undefined;
  readonly scope: string | undefined;
  readonly error: string | undefined;
}

const MAX_LENGTH = 8_192;
const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y;
const BLANKS = /[ \t]*/y;
const QUOTED = /"((?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*)"/y;
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))/y;
const SCOPE = /^[!#-[\]-~]+( [!#-[\]-~]+)*$/;

/** What the Bearer challenge says; undefined when there is none, or more than one. */
export function parseBearerChallenge(
  header: string | readonly string[] | undefined,
): BearerChallenge | undefined {
  const values = header === undefined ? [] : typeof header === 'string' ? [header] : header;
  const challenges = values.flatMap((value) => parseChallenges(value) ?? []);
  const [bearer, ...others] = challenges.filter(({ scheme }) => scheme === 'bearer');
  if (bearer === undefined || others.length > 0) return undefined;
  const { parameters } = bearer;
  const scope = parameters.get('scope');
  return {
    resourceMetadata: parameters.get('resource_metadata'),
    scope: scope !== undefined && SCOPE.test(scope) ? scope : undefined,
    error: parameters.get('error'),
  };
}

/** Undefined for a value that is not in this form. */
export function parseChallenges(value: string): readonly Challenge[] | undefined {
  return value.length > MAX_LENGTH ? undefined : new ChallengeReader(value).read();
}

class ChallengeReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): readonly Challenge[] | undefined {
    const challenges: Challenge[] = [];
    while (this.#skipCommas()) {
      const challenge = this.#challenge();
      if (challenge === undefined) return undefined;
      challenges.push(challenge);
    }
    return challenges;
  }

  /** False at the end. */
  #skipCommas(): boolean {
    do this.#take(BLANKS);
    while (this.#takeText(','));
    return this.#at < this.#text.length;
  }

  #challenge(): Challenge | undefined {
    const scheme = this.#take(TOKEN)?.[0];
    if (scheme === undefined) return undefined;
    const parameters = new Map<string, string>();
    const challenge = { scheme: scheme.toLowerCase(), parameters };
    if (this.#take(BLANKS)?.[0] === '') return this.#isAtEnd() ? challenge : undefined;
    if (this.#isAtEnd() || this.#takeToken68()) return challenge;
    return this.#parameters(parameters) ? challenge : undefined;
  }

  /** False for a list that is none, or that two readers would read differently. */
  #parameters(parameters: Map<string, string>): boolean {
    do {
      const from = this.#at;
      const parameter = this.#parameter();
      if (parameter === undefined) {
        // The name was the scheme of the next challenge.
        this.#at = from;
        return parameters.size > 0;
      }
      const [name, text] = parameter;
      if (parameters.has(name)) return false;
      parameters.set(name, text);
      this.#take(BLANKS);
      if (this.#at === this.#text.length) return true;
      if (!this.#takeText(',')) return false;
    } while (this.#skipCommas());
    return true;
  }

  #parameter(): readonly [string, string] | undefined {
    const name = this.#take(TOKEN)?.[0];
    this.#take(BLANKS);
    if (name === undefined || !this.#takeText('=')) return undefined;
    this.#take(BLANKS);
    const quoted = this.#take(QUOTED)?.[1]?.replaceAll(/\\(.)/g, '$1');
    const value = quoted ?? this.#take(TOKEN)?.[0];
    return value === undefined ? undefined : [name.toLowerCase(), value];
  }

  #takeToken68(): boolean {
    return this.#take(TOKEN68) !== undefined;
  }

  #isAtEnd(): boolean {
    return this.#at === this.#text.length || this.#text.charAt(this.#at) === ',';
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text) ?? undefined;
    if (found !== undefined) this.#at = pattern.lastIndex;
    return found;
  }

  #takeText(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}
