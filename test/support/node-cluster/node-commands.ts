// The command lines of a node's programs.

import type {
  ControlPlanePrograms,
  NodePrograms,
} from '#test/support/control-plane/build-control-plane.ts';

import { NODE_ADDRESS, NODE_NAME, SERVICE_RANGE } from './node-files.ts';
import type { NodeFiles } from './node-files.ts';

export type NodeProgram =
  | 'etcd'
  | 'apiserver'
  | 'controllerManager'
  | 'scheduler'
  | 'containerd'
  | 'kubelet'
  | 'proxy';

export function nodeCommands(
  files: NodeFiles,
  programs: ControlPlanePrograms & NodePrograms,
): Readonly<Record<NodeProgram, readonly string[]>> {
  const { path, kubeconfigs } = files;
  return {
    etcd: [programs.etcd, ...etcdFlags(files)],
    apiserver: [programs.kubeApiserver, ...apiserverFlags(files)],
    controllerManager: [
      programs.kubeControllerManager,
      ...controllerFlags(kubeconfigs['controller-manager']),
      `--service-account-private-key-file=${path('sa.key')}`,
      `--root-ca-file=${path('ca.crt')}`,
      `--cluster-signing-cert-file=${path('ca.crt')}`,
      `--cluster-signing-key-file=${path('ca.key')}`,
      '--use-service-account-credentials',
    ],
    scheduler: [programs.kubeScheduler, ...controllerFlags(kubeconfigs.scheduler)],
    containerd: ['containerd', '-c', path('containerd.toml')],
    kubelet: [
      programs.kubelet,
      `--config=${path('kubelet.yaml')}`,
      `--kubeconfig=${kubeconfigs.kubelet}`,
      `--hostname-override=${NODE_NAME}`,
      `--node-ip=${NODE_ADDRESS}`,
      `--root-dir=${path('kubelet')}`,
    ],
    proxy: [programs.kubeProxy, `--config=${path('proxy.yaml')}`],
  };
}

function etcdFlags({ path }: NodeFiles): readonly string[] {
  const url = 'http://127.0.0.1:2379';
  return [
    `--data-dir=${path('etcd')}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    '--listen-peer-urls=http://127.0.0.1:0',
    '--unsafe-no-fsync',
    '--log-level=error',
  ];
}

function apiserverFlags({ path }: NodeFiles): readonly string[] {
  return [
    '--etcd-servers=http://127.0.0.1:2379',
    '--secure-port=6443',
    '--bind-address=0.0.0.0',
    `--advertise-address=${NODE_ADDRESS}`,
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
    `--tls-cert-file=${path('apiserver.crt')}`,
    `--tls-private-key-file=${path('apiserver.key')}`,
    `--client-ca-file=${path('ca.crt')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${path('sa.key')}`,
    `--service-account-signing-key-file=${path('sa.key')}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged',
    `--kubelet-client-certificate=${path('kubelet-client.crt')}`,
    `--kubelet-client-key=${path('kubelet-client.key')}`,
    `--kubelet-certificate-authority=${path('ca.crt')}`,
    // There is no DNS: logs and exec go to the node's address.
    '--kubelet-preferred-address-types=InternalIP',
  ];
}

function controllerFlags(kubeconfig: string): readonly string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
  ];
}
