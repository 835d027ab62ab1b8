// The parameters of tools/call that every server and every era must find: a name, and arguments
// that are an object when there are any. Pure; the tool's own schema is the catalog's business.

import { FairleadError } from '#core/errors.ts';

export function checkCallParams(
  params: Readonly<Record<string, unknown>> | undefined,
): FairleadError | undefined {
  if (typeof params?.name !== 'string')
    return new FairleadError('INVALID_PARAMS', { publicDetail: 'params.name must be a string.' });
  const given = params.arguments;
  if (
    given !== undefined &&
    (typeof given !== 'object' || given === null || Array.isArray(given))
  ) {
    return new FairleadError('INVALID_PARAMS', {
      publicDetail: 'params.arguments must be an object.',
    });
  }
  return undefined;
}
