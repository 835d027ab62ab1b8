// Carries one server's answer to the agent as it comes: a JSON body in one piece, each message of a
// stream when it was sent, with back-pressure in between. The answer is complete only when the
// final response has been seen; a stream that ends without it is a lost answer, not a success.

import { FairleadError } from '#core/errors.ts';
import {
  answerError,
  answerJsonBytes,
  asFairleadError,
  endStream,
  startStream,
} from '#sidecar/agent-api/answers.ts';
import type { AgentExchange } from '#sidecar/agent-api/exchange.ts';
import type {
  AnswerSink,
  InFlightRequest,
  UpstreamFailure,
} from '#sidecar/upstream/upstream-types.ts';

import type { CallLeg, FinalResponse, LegMessage } from './call-leg.ts';
import type { InputRounds } from './input-rounds.ts';

const METHOD_NOT_FOUND = -32601;

export interface AnswerRelayOptions {
  readonly exchange: AgentExchange;
  readonly leg: CallLeg;
  readonly inputRounds: InputRounds;
  readonly partitionKey: string;
  readonly maxInputRounds: number;
  readonly call: AnsweredCall;
}

/** The call whose answer this is. One object, not functions: they would be made for each call. */
export interface AnsweredCall {
  /** The final response is about to be handed to the agent. */
  answered(): void;
  /** The answer is an error of the protocol and not of the tool. */
  refusedByServer(): void;
  failed(failure: UpstreamFailure, hasAnswerBegun: boolean): void;
}

export class AnswerRelay implements AnswerSink {
  readonly #options: AnswerRelayOptions;
  readonly #wantsStream: boolean;
  #inFlight: InFlightRequest | undefined;
  #isDone = false;
  #hasBegun = false;
  #isPaused = false;

  constructor(options: AnswerRelayOptions) {
    this.#options = options;
    this.#wantsStream = acceptsStream(options.exchange);
  }

  bind(inFlight: InFlightRequest): void {
    this.#inFlight = inFlight;
  }

  onJson(status: number, body: Buffer): void {
    const message = this.#read(body);
    if (message === undefined) return;
    if (status >= 400) this.#options.call.refusedByServer();
    if (message.kind === 'response')
      this.#finish(message, agentStatus(this.#options, message, status));
    else if (message.kind === 'fault')
      this.#fail({ code: message.code, sent: 'unknown', detail: message.detail, status });
    else
      this.#fail({
        code: 'UPSTREAM_PROTOCOL_ERROR',
        sent: 'unknown',
        detail: 'the JSON body is no response',
        status,
      });
  }

  onStreamStart(): void {
    if (this.#wantsStream) startStream(this.#options.exchange);
  }

  onMessage(data: string): void {
    if (this.#isDone) return;
    const message = this.#read(data);
    switch (message?.kind) {
      case undefined:
        return;
      case 'response':
        this.#finish(message, 200);
        return;
      case 'notification':
        this.#notify(message.text);
        return;
      case 'handled':
        return;
      case 'fault':
        this.#fail({ code: message.code, sent: 'unknown', detail: message.detail });
        return;
      default:
        message satisfies never;
    }
  }

  onStreamEnd(): void {
    this.#fail({
      code: 'OUTCOME_UNKNOWN',
      sent: 'unknown',
      detail: 'the stream ended without an answer',
    });
  }

  onFailure(failure: UpstreamFailure): void {
    this.#fail(failure);
  }

  /** Whatever a message does to its reader, the call gets an answer and its permit comes back. */
  #read(data: Buffer | string): LegMessage | undefined {
    const { leg } = this.#options;
    try {
      return typeof data === 'string' ? leg.readMessage(data) : leg.readJson(data);
    } catch (thrown) {
      const { code, logDetail = '' } = asFairleadError(thrown);
      this.#fail({ code, sent: 'unknown', detail: logDetail });
      return undefined;
    }
  }

  #notify(text: string): void {
    if (!this.#wantsStream) return;
    const { exchange } = this.#options;
    const stream = exchange.stream;
    if (stream === undefined) return;
    this.#hasBegun = true;
    exchange.record.progressEvents += 1;
    if (stream.send(text) || this.#isPaused) return;
    // The rest of what was read still comes; it waits for the same moment.
    this.#isPaused = true;
    this.#inFlight?.pause();
    stream.onDrain(() => {
      this.#isPaused = false;
      this.#inFlight?.resume();
    });
  }

  #finish(message: FinalResponse, status: number): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#inFlight?.settle();
    const { exchange, call } = this.#options;
    if (this.#isOverInputRounds(message)) {
      call.answered();
      answerError(exchange, new FairleadError('TOO_MANY_INPUT_ROUNDS'));
      return;
    }
    exchange.record.resultClass = message.resultClass;
    call.answered();
    if (exchange.stream === undefined) {
      answerJsonBytes(exchange, status, message);
      return;
    }
    exchange.stream.send(asText(message));
    endStream(exchange);
  }

  #isOverInputRounds(message: FinalResponse): boolean {
    if (message.inputRequired === undefined) return false;
    const { exchange, inputRounds, partitionKey, maxInputRounds } = this.#options;
    const round = inputRounds.next(
      partitionKey,
      exchange.request.params?.['requestState'],
      message.inputRequired.requestState,
    );
    return round > maxInputRounds;
  }

  #fail(failure: UpstreamFailure): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#inFlight?.abort();
    this.#options.call.failed(failure, this.#hasBegun);
  }
}

function asText({ payload, encoding }: FinalResponse): string {
  return encoding === 'utf8' ? payload : Buffer.from(payload, 'latin1').toString('utf8');
}

/** Within an era the server's status stands; legacy clients read errors from a 200 only. */
function agentStatus(
  { leg, exchange }: AnswerRelayOptions,
  { rpcErrorCode }: FinalResponse,
  status: number,
): number {
  if (leg.isPassThrough) return status;
  return exchange.era === 'modern' && rpcErrorCode === METHOD_NOT_FOUND ? 404 : 200;
}

/** Absent and wildcards count as yes; who names JSON only gets the final response as JSON. */
function acceptsStream({ headers }: AgentExchange): boolean {
  const accept = headers.accept;
  return (
    accept === undefined ||
    accept.includes('text/event-stream') ||
    accept.includes('*/*') ||
    accept.includes('text/*')
  );
}
