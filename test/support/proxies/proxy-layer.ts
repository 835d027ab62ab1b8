// What test/run.ts does for the files of test/proxies: the programs are brought first, and each
// file runs inside a network namespace of its own in which every address answers. A test can then
// listen on any address itself and count what reached it.

import { networkInterfaces } from 'node:os';

import { makeNetNamespace, whyNoNetNamespace } from '#test/support/net-namespace.ts';
import type { NetNamespace } from '#test/support/net-namespace.ts';
import { bringProxyPrograms } from './proxy-programs.ts';

/** Only such a namespace has it: a test that finds it may listen on any address. */
const MARK = '198.18.53.1';

/** Brings what is missing; the reason when the tests can't be run here. */
export async function bringProxyLayer(
  onProgress: (line: string) => void,
): Promise<string | undefined> {
  const reason = whyNoNetNamespace();
  if (reason !== undefined) return reason;
  try {
    await bringProxyPrograms({ onProgress });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export function makeProxyNamespace(): NetNamespace {
  return makeNetNamespace({ addresses: [`${MARK}/32`], hosts: {}, isEveryAddressLocal: true });
}

/** For `skip`: the reason when this process is not in such a namespace. */
export function whyNotInProxyNamespace(): string | false {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const isInside = addresses.some(({ address }) => address === MARK);
  return isInside ? false : 'run by "npm run test:proxies", in a network namespace';
}
