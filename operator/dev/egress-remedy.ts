// One sentence for each reason of a denial: which field of which kind to change, or that none will
// help. Pure; it explains verdicts and decides none.

import type { ServerConfig } from '#core/config/sidecar-config.ts';
import { NEVER_REACHABLE } from '#core/egress/classify-address.ts';
import type { DenyReason } from '#core/egress/egress-policy.ts';
import { exceptionsOf, hostRuleFault } from '#core/egress/host-rule.ts';

export interface Denial {
  readonly server: ServerConfig;
  readonly isDevelopment: boolean;
  /** The range of a special address. */
  readonly detail: string | undefined;
  /** As the URL has it, brackets included. */
  readonly hostname: string;
  readonly port: number;
}

type Remedy = (denial: Denial, kind: string) => string;

const requestRemedy: Remedy = () =>
  'No field of McpServer changes that; the request itself is refused.';

const REMEDIES: Readonly<Record<DenyReason, Remedy>> = {
  scheme: () => 'Use an https URL; no field of McpServer opens another scheme.',
  'user-information': () =>
    'Take the user name and password out of the URL; no field of McpServer opens that.',
  'plain-http': (_, kind) =>
    `Use https, in spec.endpoint of ${kind} too; plain http is for loopback addresses in "fairlead dev" (--development) only.`,
  'trailing-dot': () =>
    'Write the host without the final dot; no field of McpServer opens that spelling.',
  'host-form': () =>
    'Write the host with letters, digits, "-" and "_", in labels of 1 to 63 characters; no field of McpServer opens others.',
  'ip-literal': (_, kind) =>
    `Give the server a host name and list that in spec.egress.allowedHosts of ${kind}; addresses in URLs are never reached.`,
  'host-not-listed': hostRemedy,
  'internal-name': ({ hostname }, kind) =>
    `List ${JSON.stringify(hostname)} by name in spec.egress.allowedHosts of ${kind}.`,
  'port-not-listed': portRemedy,
  'special-address': addressRemedy,
  'outside-exception': (denial, kind) =>
    `Add the range of the address to ${exceptionFields(denial, 'cidrs')} of ${kind}, or correct the DNS records of ${denial.hostname}.`,
  'not-loopback': ({ hostname }) =>
    `Make ${hostname} resolve to loopback addresses on this machine; no field of McpServer opens others for it.`,
  'no-address': ({ hostname }, kind) =>
    `Give ${hostname} a DNS record, or correct the host in spec.endpoint of ${kind}.`,
  'other-origin': requestRemedy,
  'request-form': requestRemedy,
  'host-header': requestRemedy,
  'redirect-not-followed': redirectRemedy,
  'redirect-method': redirectRemedy,
  'redirect-location': redirectRemedy,
  'redirect-downgrade': redirectRemedy,
  'redirect-other-origin': redirectRemedy,
  'redirect-loop': redirectRemedy,
  'redirect-limit': redirectRemedy,
  'proxy-denied': ({ hostname, port }) =>
    `Let the egress proxy open ${hostname}:${String(port)} to the certificate of the binding; no field of McpServer changes what the proxy allows.`,
  'proxy-lets-through': () =>
    'Make the egress proxy refuse metadata addresses; until then nothing is sent through it.',
};

function redirectRemedy(_: Denial, kind: string): string {
  return `Write the address that the server redirects to into spec.endpoint of ${kind}, if that is the one meant; no field opens this redirect.`;
}

/** Null for a word that is no reason of a denial. */
export function egressRemedy(word: string, denial: Denial): string | null {
  return isDenyReason(word) ? REMEDIES[word](denial, kindOf(denial.server)) : null;
}

function isDenyReason(word: string): word is DenyReason {
  return Object.hasOwn(REMEDIES, word);
}

export function kindOf({ namespace, name }: ServerConfig): string {
  return `McpServer ${namespace}/${name}`;
}

function hostRemedy({ hostname, isDevelopment, server }: Denial, kind: string): string {
  const fault = hostRuleFault(hostname, {
    development: isDevelopment,
    place: 'allowed-host',
    exceptionHosts: server.egress.inClusterExceptions.map(({ host }) => host),
  });
  return fault === undefined
    ? `Add ${JSON.stringify(hostname)} to spec.egress.allowedHosts of ${kind}.`
    : `Use a host that spec.egress.allowedHosts of ${kind} can list; ${JSON.stringify(hostname)} is none.`;
}

function portRemedy(denial: Denial, kind: string): string {
  const { server, hostname, port } = denial;
  if (port < 1) return 'Use a port from 1 to 65535.';
  const isExcepted = exceptionsOf(server.egress.inClusterExceptions, hostname).length > 0;
  const field = isExcepted ? exceptionFields(denial, 'ports') : 'spec.egress.allowedPorts';
  return `Add ${String(port)} to ${field} of ${kind}.`;
}

function addressRemedy({ detail, hostname }: Denial, kind: string): string {
  const isNever = [...NEVER_REACHABLE].some((range) => range === detail);
  return isNever || detail === 'nat64-malformed'
    ? `Correct the DNS records of ${hostname}; no field of McpServer opens addresses of this range.`
    : `Correct the DNS records of ${hostname}, or, if that address is meant, add the host with the address's range and port to spec.egress.inClusterExceptions of ${kind}.`;
}

/** `spec.egress.inClusterExceptions[0].ports`, for each exception of the host. */
function exceptionFields({ server, hostname }: Denial, field: 'cidrs' | 'ports'): string {
  const all = server.egress.inClusterExceptions;
  return exceptionsOf(all, hostname)
    .map(
      (exception) => `spec.egress.inClusterExceptions[${String(all.indexOf(exception))}].${field}`,
    )
    .join(' or ');
}
