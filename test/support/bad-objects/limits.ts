// Bad limits: out of range, not longer than nothing, in the wrong relation.

import { NONE } from './bad-object.ts';
import type { BadObject } from './bad-object.ts';

const COUNTS: readonly (readonly [string, string, number])[] = [
  ['a concurrency of 0', 'maxConcurrency', 0],
  ['a negative concurrency', 'maxConcurrency', -1],
  ['a concurrency of 1025', 'maxConcurrency', 1025],
  ['a negative queue', 'queueSize', -1],
  ['a request limit of 1 byte', 'maxRequestBytes', 1],
  ['a response limit beyond 256 MiB', 'maxResponseBytes', 268_435_457],
  ['no input rounds', 'maxInputRounds', 0],
  ['a negative number of retries', 'maxRetries', -1],
  ['11 retries', 'maxRetries', 11],
];

const counts = COUNTS.map(
  ([what, field, value]): BadObject => ({
    title: what,
    on: 'server',
    change: { [`spec.limits.${field}`]: value },
    path: `spec.limits.${field}`,
    sidecar: {
      config: { [`servers[0].limits.${field}`]: value },
      path: `servers[0].limits.${field}`,
    },
    proves: 'R6',
  }),
);

const TIMEOUTS = ['queueTimeout', 'connectTimeout', 'requestTimeout', 'streamReadTimeout'] as const;

const zeroTimeouts = TIMEOUTS.map(
  (field): BadObject => ({
    title: `a ${field} of 0s`,
    on: 'server',
    change: { [`spec.limits.${field}`]: '0s' },
    path: `spec.limits.${field}`,
    sidecar: {
      config: { [`servers[0].limits.${field}Ms`]: 0 },
      path: `servers[0].limits.${field}Ms`,
    },
    proves: 'R6',
  }),
);

// Not requestTimeout: it would be longer than any stream time-out, which is another row's fault.
const longTimeouts = TIMEOUTS.filter((field) => field !== 'requestTimeout').map(
  (field): BadObject => ({
    title: `a ${field} of more than a day`,
    on: 'server',
    change: { 'spec.limits.streamReadTimeout': '24h', [`spec.limits.${field}`]: '24h1s' },
    path: `spec.limits.${field}`,
    sidecar: {
      config: {
        'servers[0].limits.streamReadTimeoutMs': 86_400_000,
        [`servers[0].limits.${field}Ms`]: 86_401_000,
      },
      path: `servers[0].limits.${field}Ms`,
    },
    proves: 'R6',
  }),
);

const FORMS: readonly (readonly [string, unknown])[] = [
  ['a time-out without unit', '30'],
  ['a time-out with a blank', '30 s'],
  ['a time-out in days', '1d'],
  ['a negative time-out', '-1s'],
  ['an ISO 8601 time-out', 'PT30S'],
  ['an empty time-out', ''],
  ['a time-out as number', 30],
  ['a time-out beyond what fits', '9999999999999h'],
];

const forms = FORMS.map(
  ([what, value]): BadObject => ({
    title: what,
    on: 'server',
    change: { 'spec.limits.connectTimeout': value },
    path: 'spec.limits.connectTimeout',
    sidecar: NONE.duration,
    proves: 'R6',
  }),
);

export const BAD_LIMITS: readonly BadObject[] = [
  ...counts,
  ...zeroTimeouts,
  ...longTimeouts,
  ...forms,
  {
    title: 'a stream time-out below the default request time-out',
    on: 'server',
    change: { 'spec.limits.streamReadTimeout': '29s' },
    path: 'spec.limits.streamReadTimeout',
    sidecar: {
      config: { 'servers[0].limits.streamReadTimeoutMs': 29_000 },
      path: 'servers[0].limits.streamReadTimeoutMs',
    },
    proves: 'R6',
  },
  {
    title: 'a request time-out above the default stream time-out',
    on: 'server',
    change: { 'spec.limits.requestTimeout': '5m1s' },
    path: 'spec.limits.streamReadTimeout',
    sidecar: {
      config: { 'servers[0].limits.requestTimeoutMs': 301_000 },
      path: 'servers[0].limits.streamReadTimeoutMs',
    },
    proves: 'R6',
  },
  {
    title: 'a cache time of more than a year',
    on: 'server',
    change: { 'spec.cache.defaultTtl': '8761h' },
    path: 'spec.cache.defaultTtl',
    sidecar: {
      config: { 'servers[0].cache.defaultTtlMs': 31_539_600_000 },
      path: 'servers[0].cache.defaultTtlMs',
    },
    proves: 'R5',
  },
  {
    title: 'a lower stream time-out below the lower request time-out of one binding',
    on: 'binding',
    change: { 'spec.servers[0].limits': { requestTimeout: '20s', streamReadTimeout: '10s' } },
    path: 'spec.servers[0].limits.streamReadTimeout',
    sidecar: {
      config: {
        'servers[0].limits.requestTimeoutMs': 20_000,
        'servers[0].limits.streamReadTimeoutMs': 10_000,
      },
      path: 'servers[0].limits.streamReadTimeoutMs',
    },
    proves: 'R6',
  },
  {
    title: 'a lower concurrency of 0',
    on: 'binding',
    change: { 'spec.servers[0].limits': { maxConcurrency: 0 } },
    path: 'spec.servers[0].limits.maxConcurrency',
    sidecar: {
      config: { 'servers[0].limits.maxConcurrency': 0 },
      path: 'servers[0].limits.maxConcurrency',
    },
    proves: 'R6',
  },
  {
    title: 'a lower time-out of 0s',
    on: 'binding',
    change: { 'spec.servers[0].limits': { queueTimeout: '0ms' } },
    path: 'spec.servers[0].limits.queueTimeout',
    sidecar: {
      config: { 'servers[0].limits.queueTimeoutMs': 0 },
      path: 'servers[0].limits.queueTimeoutMs',
    },
    proves: 'R6',
  },
];
