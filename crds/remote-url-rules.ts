// Rules for configured URLs and host rules: the strict lower-case pattern first, then what the
// parts of the URL must be, by Kubernetes' url() library in CEL and by core/config/remote-url.ts
// offline. Plain http, loopback and address literals pass offline in development mode only; the
// API server never takes them.

import type { z } from 'zod';

import {
  REMOTE_URL_MESSAGES,
  REMOTE_URL_PATTERN,
  checkRemoteUrl,
} from '#core/config/remote-url.ts';
import type { RemoteUrlFault } from '#core/config/remote-url.ts';
import {
  HOST_RULE_MESSAGES,
  HOST_RULE_PATTERN,
  hostRuleFault,
  hostRuleFaultPatterns,
  isHostListed,
  isPortListed,
  NUMERIC_HOST_PATTERN,
  SINGLE_LABEL_PATTERN,
} from '#core/egress/host-rule.ts';
import type { HostRuleFault, HostRulePlace, PortRules } from '#core/egress/host-rule.ts';

import { text } from './field-schemas.ts';
import { celRaw, withRules } from './rule.ts';
import type { Rule } from './rule.ts';

/** A last label of digits, or 0x and hex digits, makes the WHATWG parser read an IPv4 address. */
const NUMERIC_LABEL = '([0-9]+|0x[0-9a-f]*)';
/** On the whole URL: the API server can't bound the length of url().getHostname(). */
const NUMERIC_URL = `^https?://(\\[|([^/]*[.])?${NUMERIC_LABEL}(:[0-9]+)?(/|$))`;

/** The CEL twin of each fault that core/config/remote-url.ts tells apart. */
const URL_CEL: Readonly<Record<RemoteUrlFault, string>> = {
  form: `self.matches(${celRaw(REMOTE_URL_PATTERN)})`,
  port: "!isURL(self) || url(self).getPort() == '' || int(url(self).getPort()) <= 65535",
  'dot-segments': `!self.matches(${celRaw('/[.][.]?(/|$)')})`,
  'plain-http': "!self.startsWith('http://')",
  'numeric-host': `!self.matches(${celRaw(NUMERIC_URL)})`,
};

const urlRules: readonly Rule<string>[] = (Object.keys(URL_CEL) as RemoteUrlFault[]).map(
  (fault) => ({
    cel: URL_CEL[fault],
    message: REMOTE_URL_MESSAGES[fault],
    check: (value, { development }) => {
      const verdict = checkRemoteUrl(value, { development });
      return verdict.kind === 'ok' || verdict.reason !== fault;
    },
  }),
);

export function remoteUrl(description: string): z.ZodString {
  return withRules(text(description, { max: 2048, form: 'URL' }), urlRules);
}

function hostRules(place: HostRulePlace): readonly Rule<string>[] {
  const rule = (fault: HostRuleFault, cel: string): Rule<string> => ({
    cel,
    message: HOST_RULE_MESSAGES[fault],
    check: (value, { development }) =>
      // Whether a single label is named by an exception, the list's own rule asks.
      hostRuleFault(value, { development, place, exceptionHosts: [value] }) !== fault,
  });
  return [
    rule('form', `self.matches(${celRaw(HOST_RULE_PATTERN)})`),
    ...hostRuleFaultPatterns(place).map(([fault, pattern]) =>
      rule(fault, `!self.matches(${celRaw(pattern)})`),
    ),
  ];
}

export function hostRule(description: string, place: HostRulePlace): z.ZodString {
  return withRules(text(description, { max: 253, form: 'host rule' }), hostRules(place));
}

/** On `egress`: a single label is listed only when an exception names it. */
export const singleLabelRule: Rule<EgressRules> = {
  cel: `self.allowedHosts.all(h, !h.matches(${celRaw(SINGLE_LABEL_PATTERN)}) || h.matches(${celRaw(NUMERIC_HOST_PATTERN)}) || self.inClusterExceptions.exists(e, e.host == h))`,
  message: HOST_RULE_MESSAGES['single-label'],
  path: '.allowedHosts',
  check: ({ allowedHosts, inClusterExceptions }, { development }) => {
    const exceptionHosts = inClusterExceptions.map(({ host }) => host);
    const context = { development, place: 'allowed-host', exceptionHosts } as const;
    return allowedHosts.every((host) => hostRuleFault(host, context) !== 'single-label');
  },
};

function celHostMatches(rule: string, url: string): string {
  const host = `url(${url}).getHostname()`;
  return `(${rule}.startsWith('*.') ? ${host}.endsWith(${rule}.substring(1)) : ${rule} == ${host})`;
}

interface EgressRules extends PortRules {
  readonly allowedHosts: readonly string[];
}

export interface ListedUrl<T> {
  /** Where the URL is in `self`: `.authorization.oauth.resource`. */
  readonly path: string;
  /** CEL that is true when the URL is there; absent when it always is. */
  readonly present?: string;
  read(value: T): string | undefined;
}

/** Host and port of a URL beside `egress` must be listed there; its form is another rule's concern. */
export function listedUrlRules<T extends { readonly egress: EgressRules }>(
  target: ListedUrl<T>,
): readonly Rule<T>[] {
  const url = `self${target.path}`;
  const absent = `${target.present === undefined ? '' : `!(${target.present}) || `}!isURL(${url})`;
  const port = `(url(${url}).getPort() == '' ? 443 : int(url(${url}).getPort()))`;
  const exceptions = 'self.egress.inClusterExceptions';
  const matches = celHostMatches('e.host', url);
  return [
    {
      cel: `${absent} || self.egress.allowedHosts.exists(h, ${celHostMatches('h', url)})`,
      message: 'must have a host that egress.allowedHosts lists',
      path: target.path,
      check: (value, options) =>
        judge(target.read(value), options, ({ host }) =>
          isHostListed(value.egress.allowedHosts, host),
        ),
    },
    {
      cel:
        `${absent} || (${exceptions}.exists(e, ${matches})` +
        ` ? ${exceptions}.exists(e, ${matches} && ${port} in e.ports) : ${port} in self.egress.allowedPorts)`,
      message:
        'must have a port that egress.allowedPorts, or the in-cluster exception of its host, lists',
      path: target.path,
      check: (value, options) =>
        judge(target.read(value), options, ({ host, port: number }) =>
          isPortListed(value.egress, host, number),
        ),
    },
  ];
}

function judge(
  url: string | undefined,
  options: { readonly development: boolean },
  isListed: (target: { readonly host: string; readonly port: number }) => boolean,
): boolean {
  if (url === undefined) return true;
  const verdict = checkRemoteUrl(url, options);
  return verdict.kind === 'bad' || isListed(verdict);
}
