// The question that is asked right before each write reaches the wire: may this process still write?
// The leader lease answers it from its own age; a process that woke up too late is stopped here.

export interface WriteGate {
  /** Returns when writing is allowed, throws (LeaseLostError) when it is not. */
  assertMayWrite(): void;
}

/** For programs that have no leader, such as one-shot commands. */
export const OPEN_GATE: WriteGate = { assertMayWrite: () => undefined };

export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}
