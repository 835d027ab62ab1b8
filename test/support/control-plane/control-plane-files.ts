// What a control plane needs on disk: certificates, a service account key, kubeconfigs, the audit policy.

import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { createTestAuthority } from '#test/support/test-certificates.ts';
import type { TestAuthority } from '#test/support/test-certificates.ts';

export type AuditLevel = 'Metadata' | 'Request' | 'RequestResponse';

export interface ControlPlaneFiles {
  readonly directory: string;
  readonly authority: TestAuthority;
  path(name: string): string;
}

export interface KubeconfigIdentity {
  readonly user: string;
  readonly group?: string;
  readonly serverUrl: string;
  readonly namespace?: string;
}

export async function writeControlPlaneFiles(
  directory: string,
  auditLevel: AuditLevel | undefined,
): Promise<ControlPlaneFiles> {
  const files = {
    directory,
    authority: createTestAuthority('fairlead test control plane'),
    path: (name: string) => join(directory, name),
  };
  await mkdir(directory, { recursive: true });
  const names = [
    'localhost',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    '127.0.0.1',
    '10.0.0.1',
  ];
  const server = files.authority.issue({ names });
  const serviceAccount = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  await Promise.all([
    writeFile(files.path('ca.crt'), files.authority.certPem),
    writeFile(files.path('apiserver.crt'), server.certPem),
    writeFile(files.path('apiserver.key'), server.keyPem, { mode: 0o600 }),
    writeFile(files.path('sa.key'), serviceAccount.export({ type: 'sec1', format: 'pem' }), {
      mode: 0o600,
    }),
    writeFile(files.path('audit-policy.yaml'), renderAuditPolicy(auditLevel ?? 'Metadata')),
  ]);
  return files;
}

/** A kubeconfig with a client certificate of its own; returns its path. */
export async function writeKubeconfig(
  files: ControlPlaneFiles,
  identity: KubeconfigIdentity,
): Promise<string> {
  const { user, group, serverUrl, namespace } = identity;
  const { certPem, keyPem } = files.authority.issue({
    names: [user],
    ...(group === undefined ? {} : { organization: group }),
  });
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'test',
        cluster: {
          server: serverUrl,
          'certificate-authority-data': base64(files.authority.certPem),
        },
      },
    ],
    users: [
      {
        name: user,
        user: { 'client-certificate-data': base64(certPem), 'client-key-data': base64(keyPem) },
      },
    ],
    contexts: [
      {
        name: 'test',
        context: { cluster: 'test', user, ...(namespace === undefined ? {} : { namespace }) },
      },
    ],
    'current-context': 'test',
  };
  const path = files.path(`${user.replace(/[^a-z0-9-]/gi, '-')}.kubeconfig`);
  await writeFile(path, JSON.stringify(config, undefined, 2), { mode: 0o600 });
  return path;
}

/** Reads of the control plane by itself would drown what tests look for. */
function renderAuditPolicy(level: AuditLevel): string {
  return JSON.stringify({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [{ level: 'None', users: ['system:apiserver'] }, { level }],
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
