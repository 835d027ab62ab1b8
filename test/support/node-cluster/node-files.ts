// What a node needs on disk: certificates, kubeconfigs and the configuration of its programs. The
// settings that are not obvious say why.

import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { writeKubeconfig } from '#test/support/control-plane/control-plane-files.ts';
import { createTestAuthority } from '#test/support/test-certificates.ts';

import { PAUSE_IMAGE } from './pause-image.ts';

export const NODE_NAME = 'node-1';
export const NODE_ADDRESS = '10.98.0.1';
export const POD_RANGE = '10.99.0.0/24';
export const SERVICE_RANGE = '10.96.0.0/16';
const API_URL = `https://${NODE_ADDRESS}:6443`;

export interface NodeFiles {
  readonly directory: string;
  readonly path: (name: string) => string;
  /** By the first part of the identity, such as `admin`. */
  readonly kubeconfigs: Readonly<Record<NodeIdentity, string>>;
}

const IDENTITIES = {
  admin: { user: 'admin', group: 'system:masters' },
  'controller-manager': { user: 'system:kube-controller-manager' },
  scheduler: { user: 'system:kube-scheduler' },
  proxy: { user: 'system:kube-proxy' },
  kubelet: { user: `system:node:${NODE_NAME}`, group: 'system:nodes' },
} as const;
export type NodeIdentity = keyof typeof IDENTITIES;

export async function writeNodeFiles(directory: string): Promise<NodeFiles> {
  const path = (name: string): string => join(directory, name);
  const authority = createTestAuthority('fairlead test node');
  const control = { directory, authority, path };
  await mkdir(path('cni'), { recursive: true });
  await writeFile(path('ca.crt'), authority.certPem);
  await writeFile(path('ca.key'), authority.keyPem, { mode: 0o600 });
  const serviceNames = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  const certificates = {
    apiserver: { names: [...serviceNames, 'localhost', '127.0.0.1', '10.96.0.1', NODE_ADDRESS] },
    kubelet: { names: [NODE_NAME, NODE_ADDRESS] },
    'kubelet-client': { names: ['apiserver-kubelet-client'], organization: 'system:masters' },
  };
  for (const [name, options] of Object.entries(certificates)) {
    const { certPem, keyPem } = authority.issue(options);
    await writeFile(path(`${name}.crt`), certPem);
    await writeFile(path(`${name}.key`), keyPem, { mode: 0o600 });
  }
  const account = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const accountPem = account.export({ type: 'sec1', format: 'pem' });
  await writeFile(path('sa.key'), accountPem, { mode: 0o600 });
  const kubeconfigs = {} as Record<NodeIdentity, string>;
  for (const name of Object.keys(IDENTITIES) as NodeIdentity[]) {
    kubeconfigs[name] = await writeKubeconfig(control, { ...IDENTITIES[name], serverUrl: API_URL });
  }
  const files = { directory, path, kubeconfigs };
  await writeConfigurations(files);
  return files;
}

async function writeConfigurations(files: NodeFiles): Promise<void> {
  const { path } = files;
  await writeFile(path('containerd.toml'), containerdConfig(files));
  await writeFile(path('cni/10-bridge.conflist'), JSON.stringify(networkConfig(files)));
  // Nothing answers there: names are a matter of the test that needs them.
  await writeFile(path('resolv.conf'), 'nameserver 127.0.0.1\n');
  await writeFile(path('kubelet.yaml'), JSON.stringify(kubeletConfig(files)));
  await writeFile(path('proxy.yaml'), JSON.stringify(proxyConfig(files)));
}

function containerdConfig({ path }: NodeFiles): string {
  return `version = 2
root = "${path('containerd/root')}"
state = "${path('containerd/state')}"
[grpc]
  address = "${path('containerd.sock')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Without CAP_SYS_RESOURCE every sandbox fails otherwise.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${path('cni')}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`;
}

function networkConfig({ path }: NodeFiles): unknown {
  const ipam = {
    type: 'host-local',
    dataDir: path('cni-ipam'),
    ranges: [[{ subnet: POD_RANGE }]],
    routes: [{ dst: '0.0.0.0/0' }],
  };
  const bridge = { type: 'bridge', bridge: 'cni0', isGateway: true, hairpinMode: true };
  const portmap = { type: 'portmap', capabilities: { portMappings: true } };
  return {
    cniVersion: '0.4.0',
    name: 'pods',
    plugins: [{ ...bridge, ipMasq: false, ipam }, portmap],
  };
}

function kubeletConfig({ path }: NodeFiles): unknown {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    // Refused by default since 1.35; many build machines still have it.
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    enforceNodeAllocatable: ['pods'],
    containerRuntimeEndpoint: `unix://${path('containerd.sock')}`,
    failSwapOn: false,
    oomScoreAdj: 0,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: path('ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: path('kubelet.crt'),
    tlsPrivateKeyFile: path('kubelet.key'),
    evictionHard: {
      'nodefs.available': '1%',
      'imagefs.available': '1%',
      'memory.available': '100Mi',
    },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    resolvConf: path('resolv.conf'),
    // How soon a changed ConfigMap reaches a pod; the default is a minute.
    syncFrequency: '10s',
    podLogsDir: path('pod-logs'),
    volumePluginDir: path('kubelet/plugins'),
  };
}

function proxyConfig({ kubeconfigs }: NodeFiles): unknown {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clientConnection: { kubeconfig: kubeconfigs.proxy },
    hostnameOverride: NODE_NAME,
    clusterCIDR: POD_RANGE,
    // The namespace may not change these.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  };
}
