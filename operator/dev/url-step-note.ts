// What a step of the URL policy looked at, in a few words for people: the scheme, the rule that lists
// the host, the ports that are listed. Pure; the verdict is made elsewhere.

import { bareHost, isLoopbackHost, portOf } from '#core/egress/decide-egress.ts';
import type { UrlStepName } from '#core/egress/decide-egress.ts';
import type { EgressPolicy } from '#core/egress/egress-policy.ts';
import { exceptionsOf, listingRule } from '#core/egress/host-rule.ts';

export interface StepView {
  readonly policy: EgressPolicy;
  readonly url: URL;
  readonly isDenied: boolean;
}

export function urlStepNote(name: UrlStepName, view: StepView): string | null {
  const { policy, url, isDenied } = view;
  switch (name) {
    case 'scheme':
    case 'encryption':
      return url.protocol.slice(0, -1);
    case 'user-information':
      return isDenied ? 'present' : 'none';
    case 'trailing-dot':
      return isDenied ? url.hostname : 'none';
    case 'ip-literal':
      return isDenied ? url.hostname : null;
    case 'host':
      return hostNote(policy, url);
    case 'public-name':
      return publicNameNote(policy, url);
    case 'port':
      return portNote(policy, url);
    default:
      return name satisfies never;
  }
}

function publicNameNote({ allowedHosts }: EgressPolicy, url: URL): string {
  return allowedHosts.includes('*') ? url.hostname : 'hosts are listed by name';
}

function hostNote({ allowedHosts }: EgressPolicy, url: URL): string {
  const rule = listingRule(allowedHosts, url.hostname);
  return rule === undefined
    ? `${url.hostname} is not among ${allowedHosts.join(', ')}`
    : `listed as ${rule} (spec.egress.allowedHosts[${String(allowedHosts.indexOf(rule))}])`;
}

function portNote(policy: EgressPolicy, url: URL): string {
  const host = bareHost(url);
  const port = String(portOf(url));
  if (policy.development && isLoopbackHost(host)) return `${port}; every port of loopback hosts`;
  const all = policy.inClusterExceptions;
  const exceptions = exceptionsOf(all, host);
  const listed =
    exceptions.length === 0
      ? [`spec.egress.allowedPorts: ${policy.allowedPorts.join(', ')}`]
      : exceptions.map(
          (exception) =>
            `spec.egress.inClusterExceptions[${String(all.indexOf(exception))}].ports: ${exception.ports.join(', ')}`,
        );
  return `${port}; ${listed.join('; ')}`;
}
