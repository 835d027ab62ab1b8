// What can go wrong between the operator and the API server, as one class with a `kind` to branch on.
// `outcome` keeps the three verdicts of a write apart: the server said no, nothing was sent, or nobody
// knows. Messages carry the server's own words (its Status message), never headers or request bodies.

export type KubeErrorKind =
  | 'not-found'
  | 'conflict'
  | 'already-exists'
  | 'expired'
  | 'invalid'
  | 'forbidden'
  | 'unauthorized'
  | 'too-many-requests'
  | 'server'
  | 'unreachable'
  | 'timeout';

/** `rejected`: the server answered with an error. `not-sent`: no byte left. `unknown`: it may have been acted on. */
export type RequestOutcome = 'rejected' | 'not-sent' | 'unknown';

export interface KubeErrorDetails {
  readonly message: string;
  /** HTTP status; 0 when there was no answer. */
  readonly status?: number;
  /** The `reason` of the server's Status object. */
  readonly reason?: string;
  readonly retryAfterMs?: number;
  readonly outcome?: RequestOutcome;
  readonly cause?: unknown;
}

export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly kind: KubeErrorKind;
  readonly status: number;
  readonly reason: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly outcome: RequestOutcome;

  constructor(kind: KubeErrorKind, details: KubeErrorDetails) {
    super(details.message, details.cause === undefined ? {} : { cause: details.cause });
    this.kind = kind;
    this.status = details.status ?? 0;
    this.reason = details.reason;
    this.retryAfterMs = details.retryAfterMs;
    this.outcome = details.outcome ?? 'rejected';
  }
}

export function isKubeError(
  error: unknown,
  ...kinds: readonly KubeErrorKind[]
): error is KubeError {
  return error instanceof KubeError && (kinds.length === 0 || kinds.includes(error.kind));
}

/** The parts of a `Status` object that matter; anything else becomes undefined. */
export interface ApiStatus {
  readonly code: number | undefined;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly retryAfterSeconds: number | undefined;
}

export function parseStatus(body: unknown): ApiStatus {
  const fields = isRecord(body) ? body : {};
  const details = isRecord(fields['details']) ? fields['details'] : {};
  return {
    code: typeof fields['code'] === 'number' ? fields['code'] : undefined,
    reason: typeof fields['reason'] === 'string' ? fields['reason'] : undefined,
    message: typeof fields['message'] === 'string' ? fields['message'] : undefined,
    retryAfterSeconds:
      typeof details['retryAfterSeconds'] === 'number' ? details['retryAfterSeconds'] : undefined,
  };
}

const KIND_BY_REASON: Readonly<Record<string, KubeErrorKind>> = {
  NotFound: 'not-found',
  Conflict: 'conflict',
  AlreadyExists: 'already-exists',
  Expired: 'expired',
  Gone: 'expired',
  Invalid: 'invalid',
  BadRequest: 'invalid',
  Forbidden: 'forbidden',
  Unauthorized: 'unauthorized',
  TooManyRequests: 'too-many-requests',
  Timeout: 'timeout',
};

const KIND_BY_STATUS: Readonly<Record<number, KubeErrorKind>> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  409: 'conflict',
  410: 'expired',
  422: 'invalid',
  429: 'too-many-requests',
};

/** Pure: the kind of an error answer. The reason is more precise than the status (409 has two). */
export function classifyStatus(httpStatus: number, reason: string | undefined): KubeErrorKind {
  const byReason = reason === undefined ? undefined : KIND_BY_REASON[reason];
  return byReason ?? KIND_BY_STATUS[httpStatus] ?? 'server';
}

export interface ErrorAnswer {
  readonly httpStatus: number;
  readonly retryAfterHeader?: string | undefined;
  readonly body: unknown;
  /** `GET /api/v1/pods`: method and path, which hold no secret. */
  readonly request: string;
}

/** Pure: the error that an answer with a bad status (or an ERROR frame of a watch) stands for. */
export function errorFromAnswer(answer: ErrorAnswer): KubeError {
  const status = parseStatus(answer.body);
  const retryAfterMs =
    parseRetryAfter(answer.retryAfterHeader) ?? secondsToMs(status.retryAfterSeconds);
  const said = status.message ?? 'no message';
  return new KubeError(classifyStatus(answer.httpStatus, status.reason), {
    message: `${answer.request}: ${String(answer.httpStatus)} ${said.slice(0, 1024)}`,
    status: answer.httpStatus,
    ...(status.reason === undefined ? {} : { reason: status.reason }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    outcome: 'rejected',
  });
}

/** Pure: `Retry-After` in seconds, as API servers send it. A date or nonsense is ignored. */
export function parseRetryAfter(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d{1,6}$/.test(header.trim())) return undefined;
  return secondsToMs(Number(header.trim()));
}

function secondsToMs(seconds: number | undefined): number | undefined {
  return seconds === undefined || seconds < 0 ? undefined : seconds * 1000;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
