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
  return NOTES[name](view);
}

const deniedHost = ({ url, isDenied }: StepView): string | null => (isDenied ? url.hostname : null);

const NOTES: Readonly<Record<UrlStepName, (view: StepView) => string | null>> = {
  scheme: ({ url }) => url.protocol.slice(0, -1),
  encryption: ({ url }) => url.protocol.slice(0, -1),
  'user-information': ({ isDenied }) => (isDenied ? 'present' : 'none'),
  'trailing-dot': (view) => deniedHost(view) ?? 'none',
  'host-form': deniedHost,
  'ip-literal': deniedHost,
  host: ({ policy, url }) => hostNote(policy, url),
  'public-name': ({ policy, url }) => publicNameNote(policy, url),
  port: ({ policy, url }) => portNote(policy, url),
};

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
