// Correlation ids that the caller sends along: useful to find a call again, worthless as proof.
// Pure: reads named `_meta` keys, caps what it finds, and passes nothing on that is not a short
// plain string or a W3C trace id.

/** The agent framework's task and the model provider's tool call, as the agent names them. */
export const TASK_ID_META_KEY = 'fairlead.dev/taskId';
export const PROVIDER_TOOL_CALL_ID_META_KEY = 'fairlead.dev/providerToolCallId';
const RELATED_TASK_META_KEY = 'io.modelcontextprotocol/related-task';
const MAX_ID_LENGTH = 128;

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-|$)/;
const ZERO_TRACE = '0'.repeat(32);

type Meta = Readonly<Record<string, unknown>>;

export function readTaskId(meta: Meta | undefined): string | undefined {
  const related = meta?.[RELATED_TASK_META_KEY];
  const relatedId =
    typeof related === 'object' && related !== null && 'taskId' in related
      ? related.taskId
      : undefined;
  return capped(meta?.[TASK_ID_META_KEY]) ?? capped(relatedId);
}

export function readProviderToolCallId(meta: Meta | undefined): string | undefined {
  return capped(meta?.[PROVIDER_TOOL_CALL_ID_META_KEY]);
}

/** The trace id of a W3C `traceparent`, from `_meta` or else from the HTTP header. */
export function readTraceId(meta: Meta | undefined, header: unknown): string | undefined {
  return traceIdOf(meta?.traceparent) ?? traceIdOf(header);
}

function traceIdOf(traceparent: unknown): string | undefined {
  if (typeof traceparent !== 'string' || traceparent.length > 512) return undefined;
  const traceId = TRACEPARENT.exec(traceparent)?.[1];
  return traceId === ZERO_TRACE || traceparent.startsWith('ff') ? undefined : traceId;
}

function capped(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, MAX_ID_LENGTH) : undefined;
}
