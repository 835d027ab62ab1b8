// Every failure that Fairlead can report, in one table: what the code means on each surface and
// what the reader should do next. Callers branch on `code`, never on message text. The message on
// the wire is the table's; details go to the log through `logDetail`. A test holds docs/errors.md
// to this table.

/** `tool-error`: a tools/call result with `isError: true`, so that the model can act on it. */
export type RpcSurface = number | 'tool-error' | 'none';

export interface ErrorEntry {
  readonly message: string;
  /** What to do next; shown to people and to the model. */
  readonly next: string;
  readonly httpStatus: number;
  readonly rpc: RpcSurface;
  readonly isRetriable: boolean;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  /** Reason of a condition (`Accepted`, `ResolvedRefs`, `Programmed`) when it shows there. */
  readonly conditionReason: string | null;
}

function entry(
  message: string,
  next: string,
  surface: Partial<Omit<ErrorEntry, 'message' | 'next'>> = {},
): ErrorEntry {
  return {
    message,
    next,
    httpStatus: 200,
    rpc: 'tool-error',
    isRetriable: false,
    logLevel: 'warn',
    conditionReason: null,
    ...surface,
  };
}

/** Faults of the request itself: JSON-RPC errors with the HTTP status that MCP 2026-07-28 names. */
const requestFaults = {
  PARSE_ERROR: entry('The body is not valid JSON.', 'Send one JSON-RPC message as UTF-8 JSON.', {
    httpStatus: 400,
    rpc: -32700,
    logLevel: 'info',
  }),
  INVALID_REQUEST: entry(
    'The body is not a valid JSON-RPC 2.0 request.',
    'Check jsonrpc, id and method.',
    { httpStatus: 400, rpc: -32600, logLevel: 'info' },
  ),
  METHOD_NOT_FOUND: entry(
    'This method is not supported.',
    'Use a method that initialize or server/discover announces.',
    { httpStatus: 404, rpc: -32601, logLevel: 'info' },
  ),
  INVALID_PARAMS: entry(
    'The parameters are not valid for this method.',
    'Check the parameters against the MCP specification.',
    { httpStatus: 400, rpc: -32602, logLevel: 'info' },
  ),
  UNKNOWN_TOOL: entry('There is no such tool here.', 'Call tools/list and use a name from it.', {
    rpc: -32602,
    logLevel: 'info',
  }),
  HEADER_MISMATCH: entry(
    'A mirrored header does not match the body.',
    'Send MCP-Protocol-Version, Mcp-Method and Mcp-Name equal to the body.',
    { httpStatus: 400, rpc: -32020, logLevel: 'info' },
  ),
  MISSING_CLIENT_CAPABILITY: entry(
    'This request needs a client capability that was not declared.',
    'Declare the capability in the request and send it again.',
    { httpStatus: 400, rpc: -32021, logLevel: 'info' },
  ),
  UNSUPPORTED_PROTOCOL_VERSION: entry(
    'This protocol version is not supported.',
    'Use one of the versions in data.supported.',
    { httpStatus: 400, rpc: -32022, logLevel: 'info' },
  ),
  DUPLICATE_REQUEST_ID: entry(
    'A request with this id is already in flight in this session.',
    'Use a new id for each request.',
    { httpStatus: 400, rpc: -32600, logLevel: 'info' },
  ),
  SESSION_NOT_FOUND: entry('There is no such session.', 'Send initialize to open a new session.', {
    httpStatus: 404,
    rpc: -32001,
    logLevel: 'info',
  }),
  SESSION_REQUIRED: entry(
    'This protocol version needs the Mcp-Session-Id header.',
    'Send initialize first, then the session id with every request.',
    { httpStatus: 400, rpc: -32600, logLevel: 'info' },
  ),
  TOO_MANY_SESSIONS: entry(
    'Too many sessions are open here.',
    'End sessions with DELETE, or try again when idle ones have expired.',
    { httpStatus: 503, rpc: -32603, isRetriable: true },
  ),
  HOST_REFUSED: entry(
    'The Host header does not name this listener.',
    'Call http://127.0.0.1:<port> or http://localhost:<port>.',
    { httpStatus: 403, rpc: -32600 },
  ),
  ORIGIN_REFUSED: entry(
    'This Origin is not allowed.',
    'Call from a program, not from a web page.',
    { httpStatus: 403, rpc: -32600 },
  ),
  REQUEST_TOO_LARGE: entry(
    'The request body is over the size limit.',
    'Send less, or raise limits.maxRequestBytes on the McpServer.',
    { httpStatus: 413, rpc: -32600, logLevel: 'info' },
  ),
  METHOD_NOT_ALLOWED: entry('This HTTP method is not allowed here.', 'Use POST.', {
    httpStatus: 405,
    rpc: -32600,
    logLevel: 'info',
  }),
  NOT_ACCEPTABLE: entry(
    'The client accepts neither JSON nor event streams.',
    'Send Accept: application/json, text/event-stream.',
    { httpStatus: 406, rpc: -32600, logLevel: 'info' },
  ),
  UNSUPPORTED_MEDIA_TYPE: entry(
    'The body is not application/json.',
    'Send Content-Type: application/json.',
    { httpStatus: 415, rpc: -32600, logLevel: 'info' },
  ),
  NOT_FOUND: entry('There is nothing at this path.', 'Use /mcp, /servers/{alias}/mcp or /status.', {
    httpStatus: 404,
    rpc: -32600,
    logLevel: 'info',
  }),
} as const satisfies Record<string, ErrorEntry>;

/** What happened on the way to a remote server: tool results that the model can act on. */
const callFaults = {
  SERVER_BUSY: entry('The remote MCP server is busy.', 'Nothing was sent; try again later.', {
    isRetriable: true,
  }),
  SERVER_UNAVAILABLE: entry(
    'The remote MCP server cannot be reached.',
    'Nothing was sent; try again later or use another tool.',
    { isRetriable: true },
  ),
  OUTCOME_UNKNOWN: entry(
    'The call was sent, but its answer never arrived.',
    'Find out whether it took effect before you repeat it.',
    { logLevel: 'error' },
  ),
  CALL_TIMED_OUT: entry(
    'The tool did not answer in time.',
    'The tool only reads, so the call may be repeated.',
    { isRetriable: true },
  ),
  ANSWER_LOST: entry(
    'The connection broke before the answer arrived.',
    'The tool only reads, so the call may be repeated.',
    { isRetriable: true },
  ),
  SESSION_LOST: entry(
    'The remote MCP server ended the session before it answered.',
    'The tool only reads, so the call may be repeated.',
    { isRetriable: true },
  ),
  UPSTREAM_REFUSED: entry(
    'The remote MCP server refused the request.',
    'Ask the platform team to check the McpServer.',
    { logLevel: 'error' },
  ),
  UPSTREAM_UNAUTHORIZED: entry(
    'The remote MCP server wants authorization.',
    'Ask the platform team to configure authorization for this McpServer.',
    { logLevel: 'error' },
  ),
  UPSTREAM_PROTOCOL_ERROR: entry(
    'The remote MCP server sent an answer that is not valid MCP.',
    'Ask the operator of the server; the log has the reason.',
    { logLevel: 'error' },
  ),
  UPSTREAM_VERSION_UNSUPPORTED: entry(
    'The remote MCP server speaks no protocol version that is allowed for it.',
    'Ask the platform team to check protocol.versions of the McpServer.',
    { logLevel: 'error' },
  ),
  UPSTREAM_REDIRECTED: entry(
    'The remote MCP server answered with a redirect.',
    'Ask the platform team to set the endpoint to the address that it names.',
    { logLevel: 'error' },
  ),
  RESPONSE_TOO_LARGE: entry(
    'The answer of the remote MCP server is over the size limit.',
    'Ask for less, or raise limits.maxResponseBytes on the McpServer.',
    { logLevel: 'error' },
  ),
  EGRESS_DENIED: entry(
    'The address of the remote MCP server is not allowed.',
    'Ask the platform team to check egress of the McpServer.',
    { logLevel: 'error' },
  ),
  EGRESS_PROXY_UNPROVEN: entry(
    'The egress proxy has not shown that it refuses metadata addresses.',
    'Nothing was sent; try again later. If it lasts, ask the platform team to check the proxy.',
    { isRetriable: true },
  ),
  EGRESS_PROXY_OPEN: entry(
    'The egress proxy lets metadata addresses through, so it is not used.',
    'Nothing was sent; ask the platform team to correct the rules of the proxy.',
    { logLevel: 'error' },
  ),
  SERVER_REMOVED: entry('This server is no longer available here.', 'Call tools/list again.', {
    isRetriable: true,
  }),
  NOT_SUPPORTED_BY_SERVER: entry(
    'The remote MCP server cannot do this in a protocol version that it speaks.',
    'Use another tool.',
    {},
  ),
  TOO_MANY_INPUT_ROUNDS: entry(
    'The remote MCP server asked for input too many times.',
    'Start again, or raise limits.maxInputRounds on the McpServer.',
    {},
  ),
  DRAINING: entry('This sidecar is shutting down.', 'Try again in a moment.', {
    httpStatus: 503,
    isRetriable: true,
    logLevel: 'info',
  }),
  INTERNAL_ERROR: entry(
    'Fairlead failed to handle this request.',
    'Report it with the call_id in the log.',
    { httpStatus: 500, rpc: -32603, logLevel: 'error' },
  ),
} as const satisfies Record<string, ErrorEntry>;

/** Configuration and start-up: conditions, exit codes and log lines; never on the agent's wire. */
const configFaults = {
  CONFIG_INVALID: entry(
    'The configuration is not valid.',
    'Fix the fields that are named; the last good configuration stays in use.',
    { rpc: 'none', logLevel: 'error', conditionReason: 'Invalid' },
  ),
  CONFIG_UNSUPPORTED: entry(
    'The configuration needs a feature that this version does not have.',
    'Update the sidecar, or remove the feature.',
    { rpc: 'none', logLevel: 'error', conditionReason: 'SidecarRejected' },
  ),
  CONFIG_UNREADABLE: entry(
    'The configuration cannot be read.',
    'Check that the directory is mounted and readable.',
    { rpc: 'none', logLevel: 'error' },
  ),
  CONFIG_TOO_LARGE: entry(
    'The rendered configuration is over the size limit of a ConfigMap.',
    'Use fewer servers or smaller CA bundles in one binding.',
    { rpc: 'none', logLevel: 'error', conditionReason: 'TooLarge' },
  ),
  NOT_SUPPORTED: entry(
    'This value is not supported by this version.',
    'Remove it, or wait for a version that supports it.',
    { rpc: 'none', conditionReason: 'NotSupported' },
  ),
  SERVER_NOT_FOUND: entry('The McpServer does not exist.', 'Create it, or fix the reference.', {
    rpc: 'none',
    conditionReason: 'ServerNotFound',
  }),
  REF_NOT_PERMITTED: entry(
    'The McpServer does not allow this namespace.',
    'Set spec.allowedNamespaces on the McpServer.',
    { rpc: 'none', conditionReason: 'RefNotPermitted' },
  ),
  SERVER_NOT_ACCEPTED: entry(
    'The McpServer is not accepted.',
    'See the conditions of the McpServer.',
    { rpc: 'none', conditionReason: 'ServerNotAccepted' },
  ),
  HOST_RULE_TOO_WIDE: entry(
    'An allowed host is a wildcard over a public suffix.',
    'List the hosts of your servers, or a wildcard below a domain that is yours.',
    { rpc: 'none', conditionReason: 'HostRuleTooWide' },
  ),
  CA_BUNDLE_INVALID: entry(
    'The CA bundle is missing or holds no PEM certificate.',
    'Check the ConfigMap and key that egress.caBundleRef names.',
    { rpc: 'none', conditionReason: 'CaBundleInvalid' },
  ),
  PORT_IN_USE: entry(
    'The port is already in use.',
    'Stop the other program, or choose another port.',
    { rpc: 'none', logLevel: 'error' },
  ),
  USAGE: entry('The command line is not valid.', 'See --help.', { rpc: 'none', logLevel: 'error' }),
} as const satisfies Record<string, ErrorEntry>;

export const ERRORS = {
  ...requestFaults,
  ...callFaults,
  ...configFaults,
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorDetails {
  /** Goes to the log only; may hold untrusted text, which must have passed JSON.stringify. */
  readonly logDetail?: string;
  /** Safe to show to the caller (names that the caller sent or may list). */
  readonly publicDetail?: string;
  /** JSON-RPC `error.data`, for codes where MCP defines it. */
  readonly data?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

export class FairleadError extends Error {
  override readonly name = 'FairleadError';
  readonly code: ErrorCode;
  readonly logDetail: string | undefined;
  readonly publicDetail: string | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    super(
      wireMessage(code, details.publicDetail),
      details.cause === undefined ? {} : { cause: details.cause },
    );
    this.code = code;
    this.logDetail = details.logDetail;
    this.publicDetail = details.publicDetail;
    this.data = details.data;
  }

  get entry(): ErrorEntry {
    return ERRORS[this.code];
  }
}

/** The sentence that callers see: what happened, the safe detail, what to do next. */
export function wireMessage(code: ErrorCode, publicDetail?: string): string {
  const { message, next } = ERRORS[code];
  return publicDetail === undefined ? `${message} ${next}` : `${message} ${publicDetail} ${next}`;
}

/** The reason with which a code shows in a condition; only codes that have one may be asked. */
export function conditionReason(code: ErrorCode): string {
  const reason = ERRORS[code].conditionReason;
  if (reason === null) throw new TypeError(`${code} shows in no condition`);
  return reason;
}
