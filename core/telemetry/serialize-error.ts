// Errors as log fields, by allowlist. Of our own errors: code, message, detail. Of foreign errors
// only the class name and a code that looks like one: their messages, causes and attached objects
// (configs, requests, headers) hold URLs, tokens and bodies in every library.

import { FairleadError } from '#core/errors.ts';

export interface ErrorFields {
  readonly name: string;
  readonly code?: string;
  readonly message?: string;
  readonly detail?: string;
  /** Frames only; the first line of a stack repeats the message. */
  readonly stack?: string;
  readonly cause?: ErrorFields;
}

export interface SerializeErrorOptions {
  /** At level debug. */
  readonly withStack: boolean;
}

const CODE = /^[A-Z][A-Z0-9_]{1,63}$/;
const NAME = /^[A-Za-z][A-Za-z0-9]{0,63}$/;
const MAX_CAUSES = 4;

export function serializeError(error: unknown, options: SerializeErrorOptions): ErrorFields {
  return fieldsOf(error, options, MAX_CAUSES);
}

function fieldsOf(error: unknown, options: SerializeErrorOptions, depth: number): ErrorFields {
  if (!(error instanceof Error)) return { name: `not an Error but ${typeof error}` };
  const code: unknown = Reflect.get(error, 'code');
  return {
    name: NAME.test(error.name) ? error.name : 'Error',
    ...(typeof code === 'string' && CODE.test(code) ? { code } : {}),
    ...(error instanceof FairleadError ? ownFields(error) : {}),
    ...(options.withStack ? { stack: stackFrames(error) } : {}),
    ...(error.cause instanceof Error && depth > 0
      ? { cause: fieldsOf(error.cause, options, depth - 1) }
      : {}),
  };
}

function ownFields(error: FairleadError): Pick<ErrorFields, 'message' | 'detail'> {
  return {
    message: error.message,
    ...(error.logDetail === undefined ? {} : { detail: error.logDetail }),
  };
}

function stackFrames(error: Error): string {
  const lines = (error.stack ?? '').split('\n');
  return lines.filter((line) => /^\s+at /.test(line)).join('\n');
}
