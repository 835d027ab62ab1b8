// What the product was seen to do with one case: its verdict, and what really arrived at the
// listeners behind the resolver and the socket.

export interface SeenRequest {
  readonly method: string;
  /** Scheme of the listener, host as asked for, port as dialled. */
  readonly url: string;
  /** Lower-case names in the order in which they came. */
  readonly headers: readonly string[];
  readonly hasBody: boolean;
}

export interface Verdict {
  readonly expect: 'allow' | 'deny';
  readonly stage?: string | undefined;
  /** For people who read a failure. */
  readonly reason?: string | undefined;
  readonly deniedAtHop?: number | undefined;
  readonly selectedIssuer?: string | undefined;
  /** Addresses that the last connection was tried at. */
  readonly connectedTo?: readonly string[] | undefined;
  /** Of the last connection. */
  readonly lookups?: number | undefined;
}

export interface Observation {
  readonly verdict: Verdict;
  readonly requests: readonly SeenRequest[];
  /** Every address that was dialled, in order. */
  readonly dialled: readonly string[];
  /** What must never be seen, whatever the case expects. */
  readonly faults: readonly string[];
}
